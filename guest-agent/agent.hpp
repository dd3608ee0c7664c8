// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "guest-agent/session.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {

/// Most clients at a time; more are told so.
inline constexpr unsigned kMaxSessions = 2048;

/// Serves each client on a thread of its own, so that none waits for another.
class Agent {
 public:
  /// @pre  `context` outlives the agent's threads, which end with their clients.
  explicit Agent(const SessionContext& context) : context_(context) {}

  /// Serves the client on `socket`, on a new thread.
  void serve(UniqueFd socket);
  /// Serves the client on `socket` until it goes.
  void serve_here(UniqueFd socket);

  [[nodiscard]] unsigned session_count() const { return session_count_; }

 private:
  const SessionContext& context_;
  std::atomic<unsigned> session_count_{0};
};

}  // namespace tandem::agent
