// SPDX-License-Identifier: Apache-2.0
// A driver that makes any access to a virtio-mmio window, over RAM of the input's choice.
#include "devices/virtio_mmio/virtio_mmio.hpp"

#include <algorithm>
#include <cstdlib>

#include "tests/fakes/fake_ram.hpp"
#include "tests/fakes/fake_virtio_device.hpp"
#include "tests/fuzz/mmio_sequence.hpp"

using tandem::EventLoop;
using tandem::FakeRam;
using tandem::devices::DeviceExecutor;
using tandem::devices::FakeVirtioDevice;
using tandem::devices::IrqLine;
using tandem::devices::VirtioMmio;

namespace {

/// Consumes what the driver made available, as a device does.
void serve_queues(FakeVirtioDevice& device) {
  if (!device.activation) {
    return;
  }
  for (auto& queue : device.activation->queues) {
    while (queue.is_ready()) {
      auto chain = queue.pop();
      if (!chain) {
        device.activation->transport.set_needs_reset(text_of(chain.error()));
        return;
      }
      if (!*chain) {
        break;
      }
      queue.push(std::move(**chain), 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  constexpr uint64_t kRamBytes = 1U << 16;
  tandem::fuzz::InputReader input(bytes, size);
  const FakeRam ram(kRamBytes);
  const auto loop = EventLoop::create();
  if (!loop) {
    std::abort();
  }
  DeviceExecutor executor(**loop);
  FakeVirtioDevice device;
  VirtioMmio window("virtio0", IrqLine::detached(), device, ram.memory(), executor);
  const auto rest = input.rest();
  std::ranges::copy(rest.first(std::min<size_t>(rest.size(), kRamBytes)), ram.bytes().begin());
  tandem::fuzz::run_mmio_sequence(window, VirtioMmio::kWindowBytes, input, [&](uint8_t) {
    (*loop)->run_ready();
    serve_queues(device);
  });
  return 0;
}
