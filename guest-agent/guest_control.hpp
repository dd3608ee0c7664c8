// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guest-agent/mount_table.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// What a session does to the guest as a whole, as opposed to programs and files of it. Tests put a fake in its place.
/// @thread any.
class GuestControl {
 public:
  virtual ~GuestControl() = default;

  /// File systems on block devices, each once, those mounted first first; at a place where it can be reached, which no other
  /// mount hides.
  virtual Result<std::vector<Mount>> block_mounts() = 0;

  /// Keeps everybody from writing to the file system at `mount_point`; what is dirty is written first.
  /// @errors  Errc::kUnsupported: it cannot be frozen; Errc::kBusy: somebody else froze it.
  virtual Result<void> freeze(const std::string& mount_point) = 0;
  virtual Result<void> thaw(const std::string& mount_point) = 0;

  /// Sets CLOCK_REALTIME. @return by how much it went forward [ns].
  virtual Result<int64_t> set_realtime(uint64_t realtime_ns) = 0;

  /// Credits `seed` to the kernel's random pool, and makes its generator use it.
  virtual Result<void> reseed(std::span<const std::byte> seed) = 0;

  /// Tells neighbours where our addresses are. @return those addresses.
  virtual Result<std::vector<NetworkAddress>> announce() = 0;

  /// Whether a shutdown has to do without init.
  [[nodiscard]] virtual bool is_forced(const PowerRequest& request) const = 0;
  /// Writes what is dirty.
  virtual void sync() = 0;
  /// Reboots or powers off. A forced one does not return.
  virtual Result<void> power(const PowerRequest& request) = 0;
};

}  // namespace tandem::agent
