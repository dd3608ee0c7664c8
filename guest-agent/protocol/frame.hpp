// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/lib/result/result.hpp"

/// What both ends of a connection to the guest agent speak. @spec docs/agent-protocol.md
namespace tandem::agent {

/// What a frame carries.
enum class FrameKind : uint8_t {
  kMessage = 1,      ///< A message, either way.
  kInput = 2,        ///< Bytes for the agent: standard input, or a file. None: their end.
  kOutput = 3,       ///< Bytes from the agent: standard output, or a file. None: their end.
  kErrorOutput = 4,  ///< Bytes of standard error.
  kCredit = 5,       ///< How many more bytes of input may be sent: u32.
};

/// Longest payload of a message [bytes].
inline constexpr size_t kMaxMessageBytes = 128U << 10;
/// Longest payload of any other frame [bytes].
inline constexpr size_t kMaxStreamBytes = 64U << 10;
/// How many bytes of input may be under way before the agent grants more.
inline constexpr uint32_t kInputWindowBytes = 256U << 10;

/// One frame; on the wire `u32 length, u8 kind, u8 zero[3], bytes`, little-endian.
struct Frame {
  FrameKind kind = FrameKind::kMessage;
  std::vector<std::byte> payload{};
  bool operator==(const Frame&) const = default;
};

/// Appends a frame's wire form to `out`.
/// @pre  `payload` is no longer than a frame of `kind` may be.
void append_frame(std::vector<std::byte>& out, FrameKind kind, std::span<const std::byte> payload);

/// Takes frames out of a stream of bytes. What is not a frame is found out by its first eight bytes, so no more is ever
/// kept than the longest frame and what was appended last.
class FrameDecoder {
 public:
  void append(std::span<const std::byte> bytes);

  /// The next frame, if all of it is there.
  /// @errors  Errc::kCorrupt: an unknown kind or a length beyond its limit; nothing after that makes sense.
  Result<std::optional<Frame>> next();

 private:
  std::vector<std::byte> buffer_;
  size_t taken_ = 0;  ///< Bytes of the buffer that are behind us.
};

/// The number in a frame that grants credit.
/// @errors  Errc::kCorrupt: none is in it.
Result<uint32_t> credit_of(const Frame& frame);

/// The payload of such a frame.
std::vector<std::byte> credit_payload(uint32_t size_bytes);

}  // namespace tandem::agent
