// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of the generation id, version 1.
struct VmGenIdStateV1 {
  static constexpr StateKind kKind{"vmgenid", 1};

  std::array<uint8_t, 16> id{};

  template <typename A>
  void fields(A& archive) {
    archive(1, id);
  }
};

}  // namespace tandem::devices
