// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <utility>

namespace tandem::devices {
namespace {

short ready_events(int fd, short events) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 ? entry.revents : short{0};
}

/// A new open file description of the file behind `fd`, with O_NONBLOCK; none if the file cannot be opened by us.
UniqueFd reopen(int fd, int access_mode) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(link.c_str(), access_mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/// To open a pseudoterminal's master anew makes another pseudoterminal.
bool is_reopenable_terminal(int fd) {
  unsigned pty_number = 0;
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGPTN, &pty_number) != 0;
}

IoResult failure() {
  switch (errno) {
    case EAGAIN:
    case EINTR:
      return {IoStatus::kWouldBlock};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {IoStatus::kNoSpace};
    default:
      return {IoStatus::kEnd};
  }
}

/// What a system call that returned `count` comes to; `zero` is what 0 means to it.
IoResult result_of(ssize_t count, IoStatus zero) {
  if (count < 0) {
    return failure();
  }
  return {count == 0 ? zero : IoStatus::kDone, static_cast<size_t>(count)};
}

}  // namespace

Result<CharDescriptor> CharDescriptor::share(int fd, Direction direction) {
  struct stat status{};
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy || ::fstat(fd, &status) != 0) {
    return fail_errno("descriptor {}", fd);
  }
  const int access_mode = direction == Direction::kRead ? O_RDONLY : O_WRONLY;
  switch (status.st_mode & S_IFMT) {
    case S_IFDIR:
      return fail(Errc::kInvalidArgument, "descriptor {}: is a directory", fd);
    case S_IFSOCK:
      return CharDescriptor(std::move(copy), Kind::kSocket);
    case S_IFIFO:
      if (UniqueFd ours = reopen(fd, access_mode)) {
        return CharDescriptor(std::move(ours), Kind::kOwn);
      }
      return CharDescriptor(std::move(copy), Kind::kShared);
    case S_IFCHR:
      if (is_reopenable_terminal(fd)) {
        if (UniqueFd ours = reopen(fd, access_mode)) {
          return CharDescriptor(std::move(ours), Kind::kTerminal);
        }
      }
      return CharDescriptor(std::move(copy), ::isatty(fd) == 1 ? Kind::kSharedTerminal : Kind::kShared);
    default:
      // Regular files do not wait for anybody. Shared, so that others who write to the same file do so behind us.
      return CharDescriptor(std::move(copy), Kind::kOwn);
  }
}

IoResult CharDescriptor::read(std::span<std::byte> out) {
  const bool shared = kind_ == Kind::kShared || kind_ == Kind::kSharedTerminal;
  if ((kind_ == Kind::kTerminal || kind_ == Kind::kSharedTerminal) && !is_in_foreground(fd_.get())) {
    return {IoStatus::kBackground};
  }
  if (shared && ready_events(fd_.get(), POLLIN) == 0) {
    return {IoStatus::kWouldBlock};
  }
  if (kind_ == Kind::kSocket) {
    return result_of(::recv(fd_.get(), out.data(), out.size(), MSG_DONTWAIT), IoStatus::kEnd);
  }
  return result_of(::read(fd_.get(), out.data(), out.size()), IoStatus::kEnd);
}

IoResult CharDescriptor::write(std::span<const std::byte> bytes) {
  constexpr size_t kPromisedBytes = PIPE_BUF;  // what a pipe that is ready takes without waiting
  switch (kind_) {
    case Kind::kSocket:
      return result_of(::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL),
                       IoStatus::kWouldBlock);
    case Kind::kShared:
    case Kind::kSharedTerminal:
      if (ready_events(fd_.get(), POLLOUT) == 0) {
        return {IoStatus::kWouldBlock};
      }
      bytes = bytes.first(kind_ == Kind::kShared ? std::min(bytes.size(), kPromisedBytes) : 1);
      break;
    case Kind::kPtyMaster:
      if ((ready_events(fd_.get(), POLLOUT) & POLLHUP) != 0) {
        return {IoStatus::kEnd};
      }
      break;
    case Kind::kOwn:
    case Kind::kTerminal:
      break;
  }
  return result_of(::write(fd_.get(), bytes.data(), bytes.size()), IoStatus::kWouldBlock);
}

bool is_in_foreground(int fd) {
  const pid_t foreground = ::tcgetpgrp(fd);
  return foreground < 0 || foreground == ::getpgrp();
}

}  // namespace tandem::devices
