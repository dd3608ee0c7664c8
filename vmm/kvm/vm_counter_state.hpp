// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem {

/// Saved form of the counter that all vCPUs of a VM have in common, version 1.
struct VmCounterStateV1 {
  static constexpr StateKind kKind{"vm_counter", 1};

  uint64_t value = 0;         ///< [ticks]
  uint64_t frequency_hz = 0;  ///< The host's; a guest's cannot be another.

  template <typename A>
  void fields(A& archive) {
    archive(1, value);
    archive(2, frequency_hz);
  }
};

}  // namespace tandem
