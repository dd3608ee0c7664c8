// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "guest-agent/protocol/frame_channel.hpp"

namespace tandem::agent {

/// Input that the client has sent and that is not disposed of yet; grants credit as it is.
class InputQueue {
 public:
  explicit InputQueue(FrameChannel& channel) : channel_(channel) {}

  /// Takes a frame of input. @errors  Errc::kCorrupt: more than the client has credit for, or more after the end.
  Result<void> push(std::vector<std::byte> bytes);
  [[nodiscard]] std::span<const std::byte> front() const;
  /// Disposes of the first `count` bytes of `front()`.
  void pop(size_t count);
  /// Everything was disposed of, and nothing comes after it.
  [[nodiscard]] bool is_at_end() const { return has_ended_ && pieces_.empty(); }

 private:
  FrameChannel& channel_;
  std::deque<std::vector<std::byte>> pieces_;
  size_t consumed_ = 0;     ///< Bytes of the first piece.
  size_t waiting_ = 0;      ///< Bytes of all pieces.
  uint32_t ungranted_ = 0;  ///< Bytes that were disposed of since credit was granted.
  bool has_ended_ = false;
};

}  // namespace tandem::agent
