// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/vsock_dialer.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tandem::control {
namespace {

/// Limits how long connect(2) waits for its turn when the queue of those who want to be accepted is full.
void limit_connect(const UniqueFd& socket, const agent::Deadline& deadline) {
  constexpr int kMsPerS = 1000;
  const int limit_ms = std::max(deadline.poll_timeout_ms(), 1);  // 0 would be no limit
  const timeval limit{.tv_sec = limit_ms / kMsPerS, .tv_usec = limit_ms % kMsPerS * kMsPerS};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Result<UniqueFd> connect_to(const std::string& path, const agent::Deadline& deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() > kMaxSocketPathBytes) {
    return fail(Errc::kInvalidArgument, "{}: the path of a socket has 1 to {} bytes", path, kMaxSocketPathBytes);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket && deadline.poll_timeout_ms() >= 0) {
    limit_connect(socket, deadline);
  }
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return errno == EAGAIN ? fail(Errc::kIo, "{}: no answer in time", path) : fail_errno("{}", path);
  }
  return socket;
}

/// Reads one byte at a time: what comes behind the line belongs to the stream.
Result<std::string> read_line(const UniqueFd& socket, const agent::Deadline& deadline, int give_up_fd) {
  constexpr size_t kMostBytes = 32;
  std::string line;
  while (line.size() < kMostBytes) {
    std::array entries{pollfd{.fd = socket.get(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = give_up_fd, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(entries.data(), entries.size(), deadline.poll_timeout_ms());
    if (ready == 0) {
      return fail(Errc::kIo, "no answer in time");
    }
    if (ready > 0 && entries[1].revents != 0) {
      return fail(Errc::kIo, "interrupted");
    }
    char byte = 0;
    const ssize_t count = ready < 0 ? -1 : ::recv(socket.get(), &byte, 1, 0);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return fail(Errc::kClosed, "nothing in the guest listens");
    }
    if (byte == '\n') {
      return line;
    }
    line += byte;
  }
  return fail(Errc::kCorrupt, "not the socket of a vsock device");
}

}  // namespace

Result<UniqueFd> dial_vsock(const std::string& path, uint32_t port, const agent::Deadline& deadline, int give_up_fd) {
  UniqueFd socket = TANDEM_TRY(connect_to(path, deadline));
  const std::string request = fmt::format("CONNECT {}\n", port);
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return fail_errno("{}", path);
  }
  const std::string answer = TANDEM_TRY(with_context(read_line(socket, deadline, give_up_fd), path));
  if (!answer.starts_with("OK ")) {
    return fail(Errc::kCorrupt, "{}: not the socket of a vsock device", path);
  }
  return socket;
}

}  // namespace tandem::control
