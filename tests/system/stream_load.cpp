// SPDX-License-Identifier: Apache-2.0
#include "tests/system/stream_load.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tandem::tests {
namespace {

constexpr size_t kPortionBytes = 32U << 10;

char byte_at(size_t stream, uint64_t place) {
  return static_cast<char>(place * 167 + (place >> 10) + (place >> 18) + stream);
}

bool would_block() { return errno == EAGAIN || errno == EINTR; }

std::string failure(const char* doing) { return std::string(doing) + ": " + std::strerror(errno); }

void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// How far one stream of `exchange` has come.
struct Progress {
  uint64_t sent_bytes = 0;
  uint64_t got_bytes = 0;
  bool has_ended = false;
};

std::string send_portion(int fd, size_t stream, uint64_t size_bytes, Progress& progress) {
  std::array<char, kPortionBytes> bytes;
  const auto count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), size_bytes - progress.sent_bytes));
  for (size_t index = 0; index < count; ++index) {
    bytes[index] = byte_at(stream, progress.sent_bytes + index);
  }
  const ssize_t sent = ::send(fd, bytes.data(), count, MSG_NOSIGNAL);
  if (sent < 0) {
    return would_block() ? "" : failure("send");
  }
  progress.sent_bytes += static_cast<uint64_t>(sent);
  if (progress.sent_bytes == size_bytes && ::shutdown(fd, SHUT_WR) != 0) {
    return failure("shutdown");
  }
  return {};
}

std::string receive_portion(int fd, size_t stream, uint64_t size_bytes, Progress& progress) {
  std::array<char, kPortionBytes> bytes;
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
  if (got < 0) {
    return would_block() ? "" : failure("recv");
  }
  progress.has_ended = got == 0;
  for (size_t index = 0; index < static_cast<size_t>(got); ++index) {
    if (bytes[index] != byte_at(stream, progress.got_bytes + index)) {
      return "wrong byte " + std::to_string(progress.got_bytes + index) + " of stream " + std::to_string(stream);
    }
  }
  progress.got_bytes += static_cast<uint64_t>(got);
  if (progress.has_ended && progress.got_bytes != size_bytes) {
    return "stream " + std::to_string(stream) + " ended after " + std::to_string(progress.got_bytes) + " bytes";
  }
  return {};
}

/// A stream of `echo`, and what waits to be sent back.
struct Echo {
  UniqueFd socket;
  std::string waiting = {};
};

/// @return whether the stream goes on.
bool serve(Echo& echo, std::string& why) {
  if (echo.waiting.empty()) {
    echo.waiting.resize(kPortionBytes);
    const ssize_t got = ::recv(echo.socket.get(), echo.waiting.data(), echo.waiting.size(), 0);
    why = got < 0 && !would_block() ? failure("recv") : "";
    echo.waiting.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0) {
      return got != 0 && why.empty();
    }
  }
  const ssize_t sent = ::send(echo.socket.get(), echo.waiting.data(), echo.waiting.size(), MSG_NOSIGNAL);
  why = sent < 0 && !would_block() ? failure("send") : "";
  echo.waiting.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  return why.empty();
}

}  // namespace

std::string exchange(const std::vector<UniqueFd>& streams, uint64_t size_bytes) {
  std::vector<Progress> progress(streams.size());
  std::vector<pollfd> entries;
  for (const UniqueFd& stream : streams) {
    set_nonblocking(stream.get());
    entries.push_back({.fd = stream.get(), .events = POLLIN | POLLOUT, .revents = 0});
  }
  for (size_t left = streams.size(); left != 0;) {
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) {
      return failure("poll");
    }
    for (size_t index = 0; index < entries.size(); ++index) {
      pollfd& entry = entries[index];
      const int fd = streams[index].get();
      std::string why;
      if ((entry.revents & POLLOUT) != 0) {
        why = send_portion(fd, index, size_bytes, progress[index]);
      }
      if (why.empty() && (entry.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        why = receive_portion(fd, index, size_bytes, progress[index]);
      }
      if (!why.empty()) {
        return why;
      }
      entry.events = progress[index].sent_bytes == size_bytes ? POLLIN : POLLIN | POLLOUT;
      if (progress[index].has_ended) {
        entry.fd = -1;  // poll passes over it
        entry.revents = 0;
        progress[index].has_ended = false;
        --left;
      }
    }
  }
  return {};
}

std::string echo(int listener, size_t count) {
  std::vector<Echo> echoes;
  std::vector<pollfd> entries;
  while (count != 0 || !echoes.empty()) {
    entries.assign(1, {.fd = count == 0 ? -1 : listener, .events = POLLIN, .revents = 0});
    for (const Echo& echo : echoes) {
      const short events = echo.waiting.empty() ? POLLIN : POLLOUT;
      entries.push_back({.fd = echo.socket.get(), .events = events, .revents = 0});
    }
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) {
      return failure("poll");
    }
    for (size_t index = echoes.size(); index != 0; --index) {
      std::string why;
      if (entries[index].revents != 0 && !serve(echoes[index - 1], why)) {
        echoes.erase(echoes.begin() + static_cast<ptrdiff_t>(index - 1));
      }
      if (!why.empty()) {
        return why;
      }
    }
    if (entries[0].revents != 0) {
      UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        return failure("accept");
      }
      echoes.push_back({.socket = std::move(socket)});
      --count;
    }
  }
  return {};
}

void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace tandem::tests
