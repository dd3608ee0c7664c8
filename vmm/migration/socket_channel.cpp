// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/socket_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vmm/lib/bits/bits.hpp"

namespace tandem::migration {
namespace {

std::unexpected<Error> closed() { return fail(Errc::kClosed, "the other side has closed the connection"); }

bool is_end_of_connection(int os_error) {
  return os_error == EPIPE || os_error == ECONNRESET || os_error == ENOTCONN || os_error == ETIMEDOUT;
}

Result<void> check_is_connected_stream(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    return fail(Errc::kInvalidArgument, "descriptor {} is no socket", fd);
  }
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof peer;
  if (type != SOCK_STREAM || ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
    return fail(Errc::kInvalidArgument, "descriptor {} is no connected stream socket", fd);
  }
  return {};
}

}  // namespace

Result<SocketChannel> SocketChannel::create(UniqueFd socket, int interrupt_fd) {
  TANDEM_TRY(check_is_connected_stream(socket.get()));
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return fail_errno("fcntl");
  }
  return SocketChannel(std::move(socket), interrupt_fd);
}

Result<void> SocketChannel::wait_for(short events, const Deadline& deadline) const {
  std::array<pollfd, 2> entries{{{socket_.get(), events, 0}, {interrupt_fd_, POLLIN, 0}}};
  while (true) {
    const int ready = ::poll(entries.data(), entries.size(), deadline.poll_timeout_ms());
    if (ready > 0 && entries[1].revents != 0) {
      return fail(Errc::kIo, "interrupted");
    }
    if (ready > 0) {
      return {};
    }
    if (ready < 0 && errno != EINTR) {
      return fail_errno("poll");
    }
    if (deadline.has_passed()) {
      return fail(Errc::kIo, "nothing from the other side in time");
    }
  }
}

Result<void> SocketChannel::write(std::span<const std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      TANDEM_TRY(wait_for(POLLOUT, deadline));
    } else if (is_end_of_connection(errno)) {
      return closed();
    } else if (errno != EINTR) {
      return fail_errno("send");
    }
  }
  return {};
}

Result<void> SocketChannel::read(std::span<std::byte> out, const Deadline& deadline) {
  while (!out.empty()) {
    const auto ready = std::span(ahead_).subspan(ahead_begin_, std::min(out.size(), ahead_end_ - ahead_begin_));
    copy_bytes(ready, out);
    ahead_begin_ += ready.size();
    out = out.subspan(ready.size());
    if (out.empty()) {
      break;
    }
    // Small messages come many at a time; what is large goes where it belongs.
    const bool is_large = out.size() >= ahead_.size();
    const std::span<std::byte> room = is_large ? out : std::span(ahead_);
    const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), 0);
    if (count > 0 && is_large) {
      out = out.subspan(static_cast<size_t>(count));
    } else if (count > 0) {
      ahead_begin_ = 0;
      ahead_end_ = static_cast<size_t>(count);
    } else if (count == 0 || is_end_of_connection(errno)) {
      return closed();
    } else if (errno == EAGAIN) {
      TANDEM_TRY(wait_for(POLLIN, deadline));
    } else if (errno != EINTR) {
      return fail_errno("recv");
    }
  }
  return {};
}

bool SocketChannel::has_input() {
  if (ahead_begin_ < ahead_end_) {
    return true;
  }
  pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

void SocketChannel::end_output() { ::shutdown(socket_.get(), SHUT_WR); }

}  // namespace tandem::migration
