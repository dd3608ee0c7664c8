// SPDX-License-Identifier: Apache-2.0
// Whatever a source says, the receiver takes or refuses it. The input is what a source sends after the preamble, without the
// checksums, which no fuzzer would find: pieces of `u8 type, u16 length, payload` become messages.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/fakes/fake_migration_target.hpp"
#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/migration/migration_receiver.hpp"

namespace {

using namespace tandem;

/// A connection that ends behind the bytes it was made with, and takes everything.
class RecordedChannel final : public migration::ByteChannel {
 public:
  explicit RecordedChannel(std::vector<std::byte> input) : input_(std::move(input)) {}
  Result<void> write(std::span<const std::byte> /*bytes*/, const Deadline& /*deadline*/) override { return {}; }
  Result<void> read(std::span<std::byte> out, const Deadline& /*deadline*/) override {
    if (out.size() > input_.size() - next_) {
      return fail(Errc::kClosed, "closed");
    }
    std::copy_n(input_.begin() + static_cast<std::ptrdiff_t>(next_), out.size(), out.begin());
    next_ += out.size();
    return {};
  }
  [[nodiscard]] bool has_input() override { return false; }
  void end_output() override {}

 private:
  std::vector<std::byte> input_;
  size_t next_ = 0;
};

void append(std::vector<std::byte>& stream, std::span<const std::byte> bytes) {
  stream.insert(stream.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> stream_of(std::span<const std::byte> input) {
  std::vector<std::byte> stream(32);
  std::memcpy(stream.data(), "TANDEMMIG\r\n", 11);
  store_le(std::span(stream).subspan(12), migration::kProtocolVersion);
  std::memcpy(&stream[16], "aarch64", 7);
  uint32_t sequence = 0;
  while (input.size() >= 3) {
    const uint32_t length =
        std::min<uint32_t>(load_le<uint16_t>(input.subspan(1)), static_cast<uint32_t>(input.size() - 3));
    const std::array<uint32_t, 4> header{std::to_integer<uint32_t>(input[0]), length, sequence++, 0};
    std::vector<std::byte> message;
    append(message, std::as_bytes(std::span(header)));
    append(message, input.subspan(3, length));
    append(stream, checksum_of(message).bytes());
    append(stream, message);
    input = input.subspan(3 + length);
  }
  append(stream, input);
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  fakes::FakeMigrationTarget target(16 * 4096, nullptr);
  RecordedChannel channel(stream_of(std::as_bytes(std::span(bytes, size))));
  const auto end = migration::MigrationReceiver(channel, target).run();
  if (target.is_running() != (end && *end == migration::MigrationReceiver::End::kArrived)) {
    std::abort();
  }
  return 0;
}
