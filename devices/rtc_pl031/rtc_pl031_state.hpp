// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a PL031, version 1.
struct RtcPl031StateV1 {
  static constexpr StateKind kKind{"rtc_pl031", 1};

  uint32_t rtcmr = 0;
  uint32_t rtclr = 0;
  bool interrupt_enabled = false;
  bool interrupt_pending = false;
  uint32_t offset_s = 0;   ///< What the guest's clock is ahead of the host's, modulo 2^32.
  uint32_t checked_s = 0;  ///< The guest's clock up to which matches are found.

  template <typename A>
  void fields(A& archive) {
    archive(1, rtcmr);
    archive(2, rtclr);
    archive(3, interrupt_enabled);
    archive(4, interrupt_pending);
    archive(5, offset_s);
    archive(6, checked_s);
  }
};

}  // namespace tandem::devices
