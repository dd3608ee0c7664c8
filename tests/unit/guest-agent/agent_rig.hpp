// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "guest-agent/agent.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "tests/fakes/fake_guest_control.hpp"

namespace tandem::agent {

/// Two ends of a connection.
inline std::pair<UniqueFd, UniqueFd> socket_pair() {
  std::array<int, 2> pair{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  return {UniqueFd(pair[0]), UniqueFd(pair[1])};
}

/// An agent with a fake guest, and one client of it, over a pair of sockets.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    ::signal(SIGPIPE, SIG_IGN);
    connect();
  }
  ~AgentTest() override {
    disconnect();
    std::filesystem::remove_all(folder_);
  }

  /// A session of the agent, and the socket of its client.
  UniqueFd new_session() {
    auto [ours, agents] = socket_pair();
    sessions_.emplace_back([this, socket = std::move(agents)]() mutable { agent_.serve_here(std::move(socket)); });
    return std::move(ours);
  }

  /// A client that has shaken hands.
  FrameChannel new_client() {
    FrameChannel channel = FrameChannel::create(new_session()).value();
    EXPECT_TRUE(channel.receive_message().value().as<AgentHello>());
    EXPECT_TRUE(channel.send(ClientHello{}));
    return channel;
  }

  void connect() { channel_.emplace(new_client()); }
  /// Ends the connection, and waits until all sessions have ended, too.
  void disconnect() {
    channel_.reset();
    for (std::thread& session : sessions_) {
      session.join();
    }
    sessions_.clear();
  }

  template <typename Request>
  Message ask(const Request& request) {
    EXPECT_TRUE(channel_->send(request));
    return channel_->receive_message().value();
  }
  template <typename Reply, typename Request>
  Reply ask_for(const Request& request) {
    const Message reply = ask(request);
    const auto value = reply.template as<Reply>();
    EXPECT_TRUE(value) << (reply.is<ErrorReply>() ? reply.as<ErrorReply>()->text : value.error().message());
    return value.value_or(Reply{});
  }
  /// The code of the error that the request is answered with.
  template <typename Request>
  std::string error_of(const Request& request) {
    return ask_for<ErrorReply>(request).code;
  }
  /// The next message, past frames of streams and credit.
  Message next_message() {
    while (true) {
      Frame frame = channel_->receive().value();
      if (frame.kind == FrameKind::kMessage) {
        return message_in(std::move(frame)).value();
      }
    }
  }
  void send_input(std::string_view text) {
    EXPECT_TRUE(channel_->send(FrameKind::kInput, std::as_bytes(std::span(text))));
  }

  static std::string make_folder() {
    std::string name = testing::TempDir() + "agent-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }

  const std::string folder_ = make_folder();
  FakeGuestControl guest_;
  Freezer freezer_{guest_, folder_ + "/frozen"};
  SessionContext context_{.guest = guest_,
                          .freezer = freezer_,
                          .events = {.kernel_log = folder_ + "/kmsg", .folder = folder_},
                          .root = folder_,
                          .agent_ready_ns = 77};
  Agent agent_{context_};
  std::vector<std::thread> sessions_;
  std::optional<FrameChannel> channel_;
};

}  // namespace tandem::agent
