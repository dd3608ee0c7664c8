// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/un.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/guest-agent/agent_rig.hpp"
#include "vmm/control/agent_client.hpp"

namespace tandem::control {

/// A Unix socket that behaves like that of a vsock device with an agent behind it, or with something else.
class VsockTest : public agent::AgentTest {
 protected:
  VsockTest() {
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path, path_.data(), path_.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
  }
  ~VsockTest() override {
    disconnect();
    if (device_.joinable()) {
      device_.join();
    }
  }

  /// Takes one connection, and answers its first line with `answer`; `then` gets the rest.
  void answer_one(std::string answer, std::function<void(UniqueFd)> then) {
    device_ = std::thread([this, answer = std::move(answer), then = std::move(then)] { then(take_one(answer)); });
  }
  /// The next connection, with its first line answered. @thread the device's.
  UniqueFd take_one(const std::string& answer) {
    UniqueFd socket(::accept(listener_.get(), nullptr, nullptr));
    std::string line;
    for (char byte = 0; byte != '\n' && ::recv(socket.get(), &byte, 1, 0) == 1;) {
      line += byte;
    }
    EXPECT_EQ(line, "CONNECT 716\n");
    // The client may have gone.
    [[maybe_unused]] const ssize_t sent = ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    return socket;
  }
  void serve_one() {
    answer_one("OK 1073741824\n", [this](UniqueFd socket) { agent_.serve_here(std::move(socket)); });
  }
  /// Something other than our agent, which says `words`, and waits for the end.
  void pretend(const std::vector<std::byte>& words) {
    answer_one("OK 5\n", [words](const UniqueFd& socket) {
      EXPECT_EQ(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
      std::array<char, 256> rest{};
      while (::recv(socket.get(), rest.data(), rest.size(), 0) > 0) {
      }
    });
  }
  std::string failure() {
    const auto client = AgentClient::connect(path_, std::chrono::seconds(0));
    return client ? "" : client.error().message();
  }
  static std::vector<std::byte> hello_frame(const agent::AgentHello& hello) {
    std::vector<std::byte> frame;
    agent::append_frame(frame, agent::FrameKind::kMessage, agent::encode_message(hello));
    return frame;
  }

  const std::string path_ = folder_ + "/vsock";
  sockaddr_un address_{};
  const UniqueFd listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::thread device_;
};

}  // namespace tandem::control
