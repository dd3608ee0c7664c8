// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/agent_client.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "vmm/control/vsock_dialer.hpp"

namespace tandem::control {
namespace {

using agent::Deadline;

struct CodeName {
  std::string_view name;
  Errc code;
};
constexpr std::array<CodeName, 6> kCodes{{{"not-found", Errc::kNotFound},
                                          {"exists", Errc::kExists},
                                          {"permission", Errc::kPermission},
                                          {"busy", Errc::kBusy},
                                          {"unsupported", Errc::kUnsupported},
                                          {"bad-request", Errc::kInvalidArgument}}};

Result<AgentClient> connect_once(const std::string& path, int give_up_fd) {
  const Deadline deadline(kHelloLimit);
  auto client =
      AgentClient::greet(TANDEM_TRY(dial_vsock(path, agent::kAgentPort, deadline, give_up_fd)), deadline, give_up_fd);
  return with_context(std::move(client), path);
}

/// A text of the agent's, no longer than an agent of ours would make it.
std::string bounded(std::string text) {
  text.resize(std::min(text.size(), agent::kMaxErrorBytes));
  return text;
}

/// Whether a guest that boots may get over the error.
bool may_pass(Errc code) { return code != Errc::kUnsupported && code != Errc::kCorrupt && code != Errc::kPermission; }

}  // namespace

Result<AgentClient> AgentClient::connect(const std::string& path, std::chrono::seconds patience, int give_up_fd) {
  constexpr int kPauseMs = 50;
  const Deadline end(patience);
  while (true) {
    auto client = connect_once(path, give_up_fd);
    if (client || !may_pass(client.error().code()) || end.has_passed()) {
      return client;
    }
    pollfd give_up{.fd = give_up_fd, .events = POLLIN, .revents = 0};
    if (::poll(&give_up, 1, kPauseMs) > 0) {
      return client;
    }
  }
}

Result<AgentClient> AgentClient::greet(UniqueFd socket, const Deadline& deadline, int give_up_fd) {
  agent::FrameChannel channel = TANDEM_TRY(agent::FrameChannel::create(std::move(socket)));
  channel.give_up_on(give_up_fd);
  const agent::Message first = TANDEM_TRY(with_context(channel.receive_message(deadline), "the guest's agent"));
  TANDEM_TRY(check_no_error(first));
  auto hello = TANDEM_TRY(with_context(first.as<agent::AgentHello>(), "the guest's agent"));
  hello.version = bounded(std::move(hello.version));
  const uint32_t newest = std::min(hello.newest_protocol, agent::kNewestProtocol);
  if (newest < std::max(hello.oldest_protocol, agent::kOldestProtocol)) {
    return fail(Errc::kUnsupported, "the guest's agent ({}) speaks protocols {} to {}, this program {} to {}",
                hello.version, hello.oldest_protocol, hello.newest_protocol, agent::kOldestProtocol,
                agent::kNewestProtocol);
  }
  TANDEM_TRY(channel.send(agent::ClientHello{.protocol = newest}, deadline));
  return AgentClient(std::move(channel), std::move(hello));
}

Result<void> AgentClient::check_capability(std::string_view name) const {
  if (std::ranges::find(hello_.capabilities, name) == hello_.capabilities.end()) {
    return fail(Errc::kUnsupported, "the guest's agent ({}) does not know '{}'", hello_.version, name);
  }
  return {};
}

Result<void> AgentClient::check_no_error(const agent::Message& message) {
  if (!message.is<agent::ErrorReply>()) {
    return {};
  }
  const auto error = TANDEM_TRY(message.as<agent::ErrorReply>());
  const auto known = std::ranges::find(kCodes, error.code, &CodeName::name);
  return std::unexpected(Error(known == kCodes.end() ? Errc::kIo : known->code, bounded(error.text)));
}

}  // namespace tandem::control
