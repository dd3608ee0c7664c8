// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::pv {

/// Saved form of the PV vCPU state, version 1. Records are not in it: they start at 0 wherever they are restored.
struct PvVcpuStateV1 {
  static constexpr StateKind kKind{"pv_vcpu_state", 1};

  std::vector<uint32_t> active;  ///< Indices of the vCPUs whose record is active, ascending.

  template <typename A>
  void fields(A& archive) {
    archive(1, active);
  }
};

}  // namespace tandem::pv
