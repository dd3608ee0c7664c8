// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "vmm/lib/unique_fd/unique_fd.hpp"
#include "vmm/migration/byte_channel.hpp"

namespace tandem::migration {

/// A connected stream socket.
class SocketChannel final : public ByteChannel {
 public:
  /// Makes the socket non-blocking.
  /// @param interrupt_fd  ends every wait once it is readable, or -1; outlives the channel.
  /// @errors  Errc::kInvalidArgument: not a connected stream socket.
  static Result<SocketChannel> create(UniqueFd socket, int interrupt_fd = -1);

  Result<void> write(std::span<const std::byte> bytes, const Deadline& deadline) override;
  Result<void> read(std::span<std::byte> out, const Deadline& deadline) override;
  [[nodiscard]] bool has_input() override;
  void end_output() override;

 private:
  SocketChannel(UniqueFd socket, int interrupt_fd) : socket_(std::move(socket)), interrupt_fd_(interrupt_fd) {}
  [[nodiscard]] Result<void> wait_for(short events, const Deadline& deadline) const;

  static constexpr size_t kAheadBytes = 64U << 10;

  UniqueFd socket_;
  int interrupt_fd_;
  // What was read ahead: ahead_[ahead_begin_] up to ahead_[ahead_end_ - 1].
  std::vector<std::byte> ahead_ = std::vector<std::byte>(kAheadBytes);
  size_t ahead_begin_ = 0;
  size_t ahead_end_ = 0;
};

}  // namespace tandem::migration
