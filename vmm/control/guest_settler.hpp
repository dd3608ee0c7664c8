// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vmm/control/agent_client.hpp"
#include "vmm/lib/deadline/deadline.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"
#include "vmm/machine/machine_status.hpp"

namespace tandem::control {

/// Helps a guest that goes on later than it stopped, or elsewhere, to find its way: has its agent step the wall clock, reseed
/// the random pool, and tell the neighbours on its networks where it is. The guest runs meanwhile, and nobody waits.
/// @thread  that of `create`, unless it says otherwise.
class GuestSettler {
 public:
  struct Order {
    std::string vsock_path{};  ///< The Unix socket of the guest's vsock device; empty: it has none.
    bool step_clock = true;    ///< To the host's time.
  };
  static Result<std::unique_ptr<GuestSettler>> create(Order order);
  GuestSettler(const GuestSettler&) = delete;
  GuestSettler& operator=(const GuestSettler&) = delete;
  /// Gives up what is under way.
  ~GuestSettler();

  /// Begins, on a thread of its own, once the guest runs. All calls but the first do nothing.
  void start();
  /// How far it is. @thread any.
  [[nodiscard]] SettlingStatus status() const;

 private:
  /// One thing that the agent is asked for.
  struct Step {
    const char* subject;
    const char* deed;                                        ///< What was not done if it fails: "set".
    Result<std::string> (GuestSettler::*ask)(AgentClient&);  ///< What was done, in words.
    std::optional<std::string> outcome{};                    ///< Written under mutex_.
    bool failed = false;
  };

  GuestSettler(Order order, UniqueFd give_up);
  void run();
  void tell() const;
  /// Takes the steps that were not taken yet. @errors  there is no agent, or none any more.
  Result<void> take_steps();
  void note(Step& step, const Result<std::string>& outcome);
  Result<std::string> step_clock(AgentClient& client);
  Result<std::string> reseed(AgentClient& client);
  Result<std::string> announce(AgentClient& client);

  const Order order_;
  const UniqueFd give_up_;  // eventfd
  Deadline end_;
  mutable std::mutex mutex_;
  bool ended_ = false;  // guarded by mutex_
  std::vector<Step> steps_;
  std::thread thread_;
};

}  // namespace tandem::control
