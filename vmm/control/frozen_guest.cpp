// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/frozen_guest.hpp"

#include <chrono>

namespace tandem::control {
namespace {

/// The longest that an agent takes. Whoever froze ends the connection long before.
constexpr std::chrono::nanoseconds kFreezeLimit = std::chrono::hours(1);

}  // namespace

Result<FrozenGuest> FrozenGuest::create(const std::string& vsock_path, int give_up_fd) {
  FrozenGuest guest(TANDEM_TRY(AgentClient::connect(vsock_path, std::chrono::seconds(0), give_up_fd)));
  // Without a limit: what is dirty is written first.
  TANDEM_TRY(guest.client_.ask<agent::FreezeReply>(
      agent::FreezeRequest{.timeout_ns = static_cast<uint64_t>(kFreezeLimit.count())}, agent::Deadline()));
  return guest;
}

Result<void> FrozenGuest::thaw() {
  const auto reply = TANDEM_TRY(client_.ask<agent::ThawReply>(agent::ThawRequest{}));
  // The agent says on its own, too, that they have thawed. Then this request has an answer of its own, behind that.
  if (reply.timed_out || !client_.ask<agent::PingReply>(agent::PingRequest{})) {
    return fail(Errc::kIo, "the guest's file systems had thawed already");
  }
  return {};
}

}  // namespace tandem::control
