// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Guest RAM as the balloon needs it.
class PageDiscard {
 public:
  virtual ~PageDiscard() = default;
  /// Gives the host pages that lie wholly inside `range` back to the host; the guest reads zeros there afterwards.
  /// @pre `range` is in one region of guest RAM.
  virtual Result<void> discard(GuestRange range) = 0;
};

}  // namespace tandem::devices
