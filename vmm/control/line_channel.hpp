// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::control {

/// Lines over a stream socket, of a bounded length. Nothing here waits.
class LineChannel {
 public:
  /// @param max_line_bytes  without the newline.
  LineChannel(UniqueFd socket, size_t max_line_bytes) : socket_(std::move(socket)), max_line_bytes_(max_line_bytes) {}

  /// Reads what has come, up to a line of the greatest length. @return false once no more will come.
  /// @errors  Errc::kClosed and others: the connection is broken.
  Result<bool> fill();
  /// Removes the first line of what was read, and returns it without its newline; nothing if it is not all there yet.
  /// @errors  Errc::kOutOfRange: it is too long. The channel is of no use for reading any more.
  Result<std::optional<std::string>> next();

  /// Whether `next` has a line.
  [[nodiscard]] bool has_line() const { return input_.find('\n', taken_) != std::string::npos; }

  /// Puts text behind what is yet to be sent.
  void queue(std::string_view text) { output_ += text; }
  [[nodiscard]] size_t queued_bytes() const { return output_.size(); }
  /// Sends what there is room for.
  /// @errors  Errc::kClosed and others: the connection is broken.
  Result<void> flush();

  [[nodiscard]] int fd() const { return socket_.get(); }
  /// Whether the other end is gone altogether, rather than only silent from now on.
  [[nodiscard]] bool is_hung_up() const;
  /// What was read and not taken as lines.
  [[nodiscard]] std::string take_rest();
  /// Ends the channel, and leaves what it was made of.
  [[nodiscard]] UniqueFd take() && { return std::move(socket_); }

 private:
  UniqueFd socket_;
  const size_t max_line_bytes_;
  std::string input_;
  size_t taken_ = 0;  // of input_
  std::string output_;
};

}  // namespace tandem::control
