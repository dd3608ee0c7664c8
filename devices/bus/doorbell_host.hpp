// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Whoever can turn a guest's register write into a signalled eventfd, without an exit to the VMM.
class DoorbellHost {
 public:
  virtual ~DoorbellHost() = default;
  /// Signals `event_fd` when the guest writes `value` (4 bytes) at `addr`; other values reach the handler as ever.
  virtual Result<void> add_doorbell(GuestAddr addr, uint32_t value, int event_fd) = 0;
};

}  // namespace tandem::devices
