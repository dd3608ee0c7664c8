// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>

#include "devices/bus/device_executor.hpp"
#include "tests/fakes/fake_char_sink.hpp"

namespace tandem::devices {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// An event loop on the test's own thread, a device's executor on it, and a folder that goes with the test.
class BackendTest : public ::testing::Test {
 protected:
  struct Pipe {
    UniqueFd read_end;
    UniqueFd write_end;
  };

  BackendTest() { std::signal(SIGPIPE, SIG_IGN); }
  ~BackendTest() override { std::filesystem::remove_all(folder_); }

  static Pipe make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  static std::array<UniqueFd, 2> make_socket_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  static void send_all(int fd, std::string_view text) {
    ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// What can be read now without waiting; leaves the description's flags alone.
  static std::string read_ready(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    while (::poll(&entry, 1, 0) > 0 && (entry.revents & POLLIN) != 0) {
      const ssize_t count = ::read(fd, buffer.data(), buffer.size());
      if (count <= 0) {
        break;
      }
      text.append(buffer.data(), static_cast<size_t>(count));
    }
    return text;
  }
  /// Makes the pipe's buffer full.
  static size_t fill(int pipe_write_end) {
    const std::string page(4096, '#');
    size_t written = 0;
    pollfd entry{.fd = pipe_write_end, .events = POLLOUT, .revents = 0};
    while (::poll(&entry, 1, 0) > 0) {
      send_all(pipe_write_end, page);
      written += page.size();
    }
    return written;
  }

  /// Lets the loop work until `done`. What never comes is ended by the test's time limit.
  template <typename Condition>
  void run_until(Condition done) {
    while (!done()) {
      loop_->run_ready();
    }
  }
  /// Lets the loop work until it has called someone.
  void run_until_called() {
    while (loop_->run_ready() == 0) {
    }
  }
  /// Lets the loop work until `fd` has delivered `text` in all.
  void expect_output(int fd, std::string_view text) {
    std::string got;
    run_until([&] { return (got += read_ready(fd)).size() >= text.size(); });
    EXPECT_EQ(got, text);
  }
  void expect_input(const FakeCharSink& sink, std::string_view text) {
    run_until([&] { return sink.received().size() >= text.size(); });
    EXPECT_EQ(sink.received(), text);
  }

  static std::string make_folder() {
    std::string name = ::testing::TempDir() + "tandemXXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }

  const std::string folder_ = make_folder();
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  DeviceExecutor executor_{*loop_};
};

}  // namespace tandem::devices
