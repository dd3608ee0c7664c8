// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/listening_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

namespace tandem::devices {
namespace {

class ListeningSocketTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string path() const { return directory_ + "/socket"; }

  /// What a process leaves behind that is killed.
  void leave_socket() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  /// How many of two that start at the same time get the path.
  [[nodiscard]] int starters_that_listen() const {
    std::array<std::optional<ListeningSocket>, 2> sockets;
    std::barrier start(2);
    const auto main = [&](size_t index) {
      start.arrive_and_wait();
      if (auto made = ListeningSocket::create(path())) {
        sockets[index].emplace(*std::move(made));
      }
    };
    std::thread other(main, 1);
    main(0);
    other.join();
    return static_cast<int>(sockets[0].has_value()) + static_cast<int>(sockets[1].has_value());
  }

 private:
  std::string directory_ = "/tmp/tandem-listen-XXXXXX";
};

TEST_F(ListeningSocketTest, OneOfTwoThatStartTogetherGetsThePath) {
  for (int round = 0; round < 300; ++round) {
    ASSERT_EQ(starters_that_listen(), 1) << "round " << round;
  }
}

TEST_F(ListeningSocketTest, OneOfTwoThatStartTogetherReplacesAStaleSocket) {
  for (int round = 0; round < 300; ++round) {
    ASSERT_NO_FATAL_FAILURE(leave_socket());
    ASSERT_EQ(starters_that_listen(), 1) << "round " << round;
  }
}

TEST_F(ListeningSocketTest, ThePathGoesWithTheSocket) {
  {
    const auto socket = ListeningSocket::create(path());
    ASSERT_TRUE(socket);
    EXPECT_EQ(ListeningSocket::create(path()).error().code(), Errc::kBusy);
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ListeningSocketTest, WhatIsNoSocketIsLeftAlone) {
  const UniqueFd file(::open(path().c_str(), O_CREAT | O_WRONLY, 0600));
  ASSERT_TRUE(file);
  EXPECT_EQ(ListeningSocket::create(path()).error().code(), Errc::kExists);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

}  // namespace
}  // namespace tandem::devices
