// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/frame_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace tandem::agent {
namespace {

std::unexpected<Error> closed() { return fail(Errc::kClosed, "the connection has ended"); }

bool is_end_of_connection(int os_error) {
  return os_error == EPIPE || os_error == ECONNRESET || os_error == ENOTCONN || os_error == ETIMEDOUT;
}

}  // namespace

Result<Message> message_in(Frame frame) {
  if (frame.kind != FrameKind::kMessage) {
    return fail(Errc::kCorrupt, "a stream's frame where a message is due");
  }
  return Message::decode(std::move(frame.payload));
}

Result<FrameChannel> FrameChannel::create(UniqueFd socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return fail_errno("fcntl");
  }
  return FrameChannel(std::move(socket));
}

Result<void> FrameChannel::wait_for(short events, const Deadline& deadline) const {
  std::array<pollfd, 2> entries{{{fd(), events, 0}, {interrupt_fd_, POLLIN, 0}}};
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
      return fail(Errc::kIo, "no answer in time");
    }
  }
}

Result<void> FrameChannel::send(FrameKind kind, std::span<const std::byte> payload, Deadline deadline) {
  queue(kind, payload);
  while (true) {
    TANDEM_TRY(flush());
    if (queued_bytes() == 0) {
      return {};
    }
    TANDEM_TRY(wait_for(POLLOUT, deadline));
  }
}

Result<void> FrameChannel::send_message(std::span<const std::byte> payload, const Deadline& deadline) {
  if (payload.size() > kMaxMessageBytes) {
    return fail(Errc::kOutOfRange, "a message of {} bytes; at most {} are allowed", payload.size(), kMaxMessageBytes);
  }
  return send(FrameKind::kMessage, payload, deadline);
}

Result<Frame> FrameChannel::receive(Deadline deadline) {
  while (true) {
    if (auto frame = TANDEM_TRY(next())) {
      return std::move(*frame);
    }
    TANDEM_TRY(wait_for(POLLIN, deadline));
    TANDEM_TRY(fill());
  }
}

Result<Message> FrameChannel::receive_message(Deadline deadline) { return message_in(TANDEM_TRY(receive(deadline))); }

Result<void> FrameChannel::write_queued() {
  while (queued_bytes() > 0) {
    const auto rest = std::span(output_).subspan(sent_);
    const ssize_t count = ::send(fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      sent_ += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      forget_sent();
      return {};
    } else if (is_end_of_connection(errno)) {
      return closed();
    } else if (errno != EINTR) {
      return fail_errno("send");
    }
  }
  output_.clear();
  sent_ = 0;
  return {};
}

/// The queue of a socket that never takes everything would grow for ever. No more is moved than was sent since.
void FrameChannel::forget_sent() {
  if (sent_ >= queued_bytes()) {
    output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
}

Result<void> FrameChannel::read_once() {
  std::array<std::byte, kMaxStreamBytes> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t count = ::recv(fd(), bytes.data(), bytes.size(), 0);
  if (count > 0) {
    decoder_.append(std::span(bytes).first(static_cast<size_t>(count)));
    return {};
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return {};
  }
  if (count < 0 && !is_end_of_connection(errno)) {
    return fail_errno("recv");
  }
  return closed();
}

}  // namespace tandem::agent
