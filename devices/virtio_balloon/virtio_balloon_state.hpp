// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a balloon device, version 1. Which pages are in the balloon is the driver's knowledge.
struct VirtioBalloonStateV1 {
  static constexpr StateKind kKind{"virtio_balloon", 1};

  uint32_t num_pages = 0;
  uint32_t actual = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, num_pages);
    archive(2, actual);
  }
};

}  // namespace tandem::devices
