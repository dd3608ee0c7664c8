// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem {

/// Saved form of what a machine knows of its guests, version 1. What a reset loads travels beside the state.
struct BootStateV1 {
  static constexpr StateKind kKind{"boot", 1};

  uint64_t reset_count = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, reset_count);
  }
};

}  // namespace tandem
