// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "devices/backend/listening_socket.hpp"
#include "vmm/lib/deadline/deadline.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::migration {

/// Where the other side is: `unix:PATH`, `tcp:HOST:PORT` or `fd:N`.
struct MigrationAddress {
  enum class Kind : uint8_t { kUnix, kTcp, kFd };
  Kind kind = Kind::kFd;
  std::string text;  ///< As the user wrote it.
  std::string path;  ///< kUnix: from 1 to 107 bytes.
  std::string host;  ///< kTcp: a number, of IPv4 or IPv6; names are not resolved.
  uint16_t port = 0;
  int fd = -1;  ///< kFd: a connected stream socket that the process was started with.

  /// Opens nothing.
  /// @errors  Errc::kInvalidArgument, Errc::kOutOfRange.
  static Result<MigrationAddress> parse(std::string_view text);

  /// Whether only this host can connect to it.
  [[nodiscard]] bool is_local() const;
};

/// Connects to a receiver; takes the descriptor over for kFd.
/// @param interrupt_fd  ends the wait when it is readable; -1: nothing does.
/// @errors  as connect(2); Errc::kIo: the deadline has passed; Errc::kClosed: interrupted.
Result<UniqueFd> connect_to(const MigrationAddress& address, const Deadline& deadline, int interrupt_fd = -1);

/// Waits for senders.
class MigrationListener {
 public:
  /// Says in the log when others than this host can connect.
  /// @errors  as bind(2) and listen(2).
  static Result<MigrationListener> create(const MigrationAddress& address);

  /// The next sender. @param interrupt_fd  ends the wait once it is readable, or -1.
  /// @errors  Errc::kClosed: interrupted, or the one connection of kFd was handed out before.
  Result<UniqueFd> accept(int interrupt_fd);

  /// Whether there may be another sender after one that went away.
  [[nodiscard]] bool may_have_another() const { return !inherited_; }
  /// The port of a tcp listener, which the host chose for port 0.
  [[nodiscard]] Result<uint16_t> port() const;

 private:
  MigrationListener() = default;
  [[nodiscard]] int fd() const { return unix_ ? unix_->fd() : socket_.get(); }

  std::optional<devices::ListeningSocket> unix_;
  UniqueFd socket_;  // a tcp listener, or the inherited connection
  bool inherited_ = false;
};

}  // namespace tandem::migration
