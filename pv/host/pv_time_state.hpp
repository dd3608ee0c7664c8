// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::pv {

/// Saved form of PV time, version 1.
struct PvTimeStateV1 {
  static constexpr StateKind kKind{"pv_time", 1};

  std::vector<uint8_t> contents;  ///< All of the region.

  template <typename A>
  void fields(A& archive) {
    archive(1, contents);
  }
};

}  // namespace tandem::pv
