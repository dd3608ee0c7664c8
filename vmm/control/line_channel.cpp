// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/line_channel.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace tandem::control {

Result<bool> LineChannel::fill() {
  input_.erase(0, std::exchange(taken_, 0));
  std::array<char, 4096> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  while (input_.size() <= max_line_bytes_) {
    const size_t most = std::min(piece.size(), max_line_bytes_ + 1 - input_.size());
    const ssize_t count = ::recv(socket_.get(), piece.data(), most, MSG_DONTWAIT);
    if (count == 0) {
      return false;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      break;
    }
    if (count < 0) {
      return fail_errno("receive");
    }
    input_.append(piece.data(), static_cast<size_t>(count));
  }
  return true;
}

Result<std::optional<std::string>> LineChannel::next() {
  const size_t end = input_.find('\n', taken_);
  if (end == std::string::npos) {
    if (input_.size() - taken_ > max_line_bytes_) {
      return fail(Errc::kOutOfRange, "a line is longer than {} bytes", max_line_bytes_);
    }
    return std::nullopt;
  }
  std::string line = input_.substr(taken_, end - taken_);
  taken_ = end + 1;
  return line;
}

std::string LineChannel::take_rest() {
  input_.erase(0, std::exchange(taken_, 0));
  return std::exchange(input_, {});
}

Result<void> LineChannel::flush() {
  while (!output_.empty()) {
    const ssize_t count = ::send(socket_.get(), output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return {};
    }
    if (count < 0) {
      return fail_errno("send");
    }
    output_.erase(0, static_cast<size_t>(count));
  }
  return {};
}

bool LineChannel::is_hung_up() const {
  pollfd entry{.fd = socket_.get(), .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace tandem::control
