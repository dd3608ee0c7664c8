// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "guest-agent/protocol/frame_channel.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::control {

/// How long an agent may take for its first words, and for an answer that needs no work.
inline constexpr std::chrono::seconds kHelloLimit{10};
inline constexpr std::chrono::seconds kAnswerLimit{60};

/// The host's end of a connection to the agent in a guest. What the agent says is as little to be trusted as the guest.
class AgentClient {
 public:
  /// @param path  the Unix socket of the guest's vsock device.
  /// @param patience  how long to try again while no agent answers.
  /// @param give_up_fd  no more waiting once it is readable, now and by the channel (FrameChannel::give_up_on); -1: none.
  /// @errors  as `dial_vsock`; Errc::kUnsupported: no protocol in common; Errc::kCorrupt: no agent is what answers.
  static Result<AgentClient> connect(const std::string& path, std::chrono::seconds patience, int give_up_fd = -1);
  /// Shakes hands on a socket that is connected to an agent.
  static Result<AgentClient> greet(UniqueFd socket, const agent::Deadline& deadline, int give_up_fd = -1);

  [[nodiscard]] const agent::AgentHello& hello() const { return hello_; }
  agent::FrameChannel& channel() { return channel_; }

  /// Sends a request. @errors  Errc::kUnsupported: the agent does not know it.
  template <typename Request>
  Result<void> request(const Request& request) {
    TANDEM_TRY(check_capability(Request::kName));
    return channel_.send(request, agent::Deadline(kAnswerLimit));
  }
  /// The `Reply` that the next message has to be.
  template <typename Reply>
  Result<Reply> reply(const agent::Deadline& deadline) {
    return reply_in<Reply>(TANDEM_TRY(channel_.receive_message(deadline)));
  }
  /// Asks, and waits for the answer.
  template <typename Reply, typename Request>
  Result<Reply> ask(const Request& request, agent::Deadline deadline = agent::Deadline(kAnswerLimit)) {
    TANDEM_TRY(this->request(request));
    return reply<Reply>(deadline);
  }

  /// The `Reply` in a message. @errors  what the agent says in place of it.
  template <typename Reply>
  static Result<Reply> reply_in(const agent::Message& message) {
    TANDEM_TRY(check_no_error(message));
    return message.as<Reply>();
  }

 private:
  AgentClient(agent::FrameChannel channel, agent::AgentHello hello)
      : channel_(std::move(channel)), hello_(std::move(hello)) {}
  Result<void> check_capability(std::string_view name) const;
  static Result<void> check_no_error(const agent::Message& message);

  agent::FrameChannel channel_;
  agent::AgentHello hello_;
};

}  // namespace tandem::control
