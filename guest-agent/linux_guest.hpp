// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "guest-agent/guest_control.hpp"

namespace tandem::agent {

/// Who shuts the guest down when that is asked for.
enum class Shutdown : uint8_t {
  kByInit,  ///< The programs poweroff and reboot, which ask init.
  kByUs,    ///< There is no init to ask.
};

/// The guest that the agent runs in.
class LinuxGuest final : public GuestControl {
 public:
  explicit LinuxGuest(Shutdown shutdown) : shutdown_(shutdown) {}

  Result<std::vector<Mount>> block_mounts() override;
  Result<void> freeze(const std::string& mount_point) override;
  Result<void> thaw(const std::string& mount_point) override;
  Result<int64_t> set_realtime(uint64_t realtime_ns) override;
  Result<void> reseed(std::span<const std::byte> seed) override;
  Result<std::vector<NetworkAddress>> announce() override;
  [[nodiscard]] bool is_forced(const PowerRequest& request) const override;
  void sync() override;
  Result<void> power(const PowerRequest& request) override;

 private:
  const Shutdown shutdown_;
};

}  // namespace tandem::agent
