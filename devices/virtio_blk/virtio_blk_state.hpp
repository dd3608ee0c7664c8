// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a virtio block device, version 1: which disk the driver knows. No request is in flight when it is saved.
struct VirtioBlkStateV1 {
  static constexpr StateKind kKind{"virtio_blk", 1};

  uint64_t capacity_sectors = 0;
  bool read_only = false;
  std::string serial;

  template <typename A>
  void fields(A& archive) {
    archive(1, capacity_sectors);
    archive(2, read_only);
    archive(3, serial);
  }
};

}  // namespace tandem::devices
