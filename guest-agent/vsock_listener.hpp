// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {

/// Listens on a vsock port, for the host alone: programs of the guest could reach it through vsock's loopback, and the agent
/// does what root does.
class VsockListener {
 public:
  /// @errors  Errc::kUnsupported: this kernel has no vsock, or its driver is not loaded; Errc::kBusy: another listens.
  static Result<VsockListener> create(uint32_t port);

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// The next connection of the host; nothing if it was somebody else's, or there is none.
  /// @errors  Errc::kBusy: no descriptor or no memory for one now.
  Result<UniqueFd> accept() const;

 private:
  explicit VsockListener(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace tandem::agent
