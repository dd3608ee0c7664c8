// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a console device, version 1.
struct VirtioConsoleStateV1 {
  static constexpr StateKind kKind{"virtio_console", 1};

  uint16_t cols = 0;
  uint16_t rows = 0;
  /// Bytes at the start of the next transmit buffer that have been output already.
  uint64_t transmitted_bytes = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, cols);
    archive(2, rows);
    archive(3, transmitted_bytes);
  }
};

}  // namespace tandem::devices
