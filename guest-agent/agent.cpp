// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/agent.hpp"

#include <system_error>
#include <thread>
#include <utility>

namespace tandem::agent {

void Agent::serve(UniqueFd socket) {
  try {
    std::thread([this, owned = std::move(socket)]() mutable { serve_here(std::move(owned)); }).detach();
  } catch (const std::system_error&) {
    // No thread is to be had: the socket is closed, and the client sees that.
  }
}

void Agent::serve_here(UniqueFd socket) {
  const unsigned others = session_count_++;
  if (auto channel = FrameChannel::create(std::move(socket))) {
    Session session(std::move(*channel), context_);
    if (others < kMaxSessions) {
      session.run();
    } else {
      session.refuse();
    }
  }
  --session_count_;
}

}  // namespace tandem::agent
