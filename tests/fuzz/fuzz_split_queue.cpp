// SPDX-License-Identifier: Apache-2.0
// Rings and descriptors of any content: the device gets chains inside guest RAM, or a fault, and always an end.
#include "devices/virtio_queue/split_queue.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/fakes/fake_ram.hpp"
#include "tests/fuzz/input_reader.hpp"

using tandem::FakeRam;
using tandem::devices::DescriptorChain;
using tandem::devices::SplitQueue;

namespace {

template <typename Span>
void expect_inside(const FakeRam& ram, Span piece) {
  const auto all = ram.bytes();
  if (piece.empty() || piece.data() < all.data() || piece.data() + piece.size() > all.data() + all.size()) {
    std::abort();
  }
}

void use(const FakeRam& ram, DescriptorChain& chain) {
  for (const auto piece : chain.readable()) {
    expect_inside(ram, piece);
  }
  for (const auto piece : chain.writable()) {
    expect_inside(ram, piece);
  }
  std::array<std::byte, 64> buffer{};
  (void)chain.read(0, buffer);
  (void)chain.write(chain.writable_size() / 2, buffer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  constexpr uint64_t kRamBytes = 1U << 16;
  constexpr uint16_t kMaxSize = 256;
  tandem::fuzz::InputReader input(bytes, size);
  const FakeRam ram(kRamBytes);
  SplitQueue queue(ram.memory(), kMaxSize);
  SplitQueue::State state{.size = static_cast<uint16_t>(1U << input.take<uint8_t>() % 9), .ready = true};
  for (uint64_t* addr : {&state.desc_addr, &state.driver_addr, &state.device_addr}) {
    *addr = FakeRam::kBase.value() + input.take<uint16_t>();
  }
  state.next_avail = input.take<uint16_t>();
  state.next_used = input.take<uint16_t>();
  const auto features = input.take<uint64_t>();
  const auto rest = input.rest();
  std::ranges::copy(rest.first(std::min<size_t>(rest.size(), kRamBytes)), ram.bytes().begin());
  if (!queue.configure(state, features)) {
    return 0;
  }
  for (unsigned count = 0; count < 2U * kMaxSize; ++count) {
    auto chain = queue.pop();
    if (!chain || !*chain) {
      break;
    }
    use(ram, **chain);
    queue.push(std::move(**chain), 1);
    (void)queue.should_notify();
  }
  return 0;
}
