// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "vmm/control/agent_client.hpp"

namespace tandem::control {

/// A guest whose file systems its agent has frozen, so that what is on its disks is whole. They thaw when this ends, even if
/// the guest is restored from a snapshot meanwhile: the connection is gone there.
class FrozenGuest {
 public:
  /// Has the agent write what is dirty, and freeze.
  /// @param vsock_path  the Unix socket of the guest's vsock device.
  /// @param give_up_fd  no more waiting once it is readable.
  /// @errors  why the agent did not; nothing is frozen then.
  static Result<FrozenGuest> create(const std::string& vsock_path, int give_up_fd);

  /// Has the agent thaw them.
  /// @errors  they were not frozen any more, or it cannot be known.
  Result<void> thaw();

 private:
  explicit FrozenGuest(AgentClient client) : client_(std::move(client)) {}
  AgentClient client_;
};

}  // namespace tandem::control
