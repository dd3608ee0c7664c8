// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::pv {

/// The records of one machine's vCPUs as far as the kernel that runs them keeps them.
class KernelRecords {
 public:
  virtual ~KernelRecords() = default;

  /// Whether the kernel can keep the record of every vCPU.
  [[nodiscard]] virtual bool can_be_kept() const = 0;

  /// Says where the record of each vCPU is: one after the other from `base` on. Once in a machine's life.
  /// @pre  there is memory of this process behind them, which is writable here.
  virtual Result<void> place(GuestAddr base) = 0;

  /// Has the kernel keep the record of `vcpu`, from 0 on, or has it stop and zero the record. Nothing if it does already.
  /// @pre     placed; the vCPU does not run.
  /// @errors  the record's memory cannot be had.
  virtual Result<void> keep(unsigned vcpu, bool kept) = 0;
};

}  // namespace tandem::pv
