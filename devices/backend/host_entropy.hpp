// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/backend/entropy_source.hpp"

namespace tandem::devices {

/// The host kernel's generator. Waits for it only on a host that has just booted and has not gathered a seed yet.
class HostEntropy final : public EntropySource {
 public:
  /// @errors  as getrandom(2).
  /// @thread  any.
  Result<void> fill(std::span<std::byte> out) override;
};

}  // namespace tandem::devices
