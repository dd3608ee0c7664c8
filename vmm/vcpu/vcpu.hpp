// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/result/result.hpp"
#include "vmm/vcpu/vm_exit.hpp"

namespace tandem {

/// One virtual CPU: runs until the next `VmExit`.
/// @thread  all but `set_immediate_exit` belong to the vCPU's thread, or to any one thread while it is parked.
class Vcpu {
 public:
  virtual ~Vcpu() = default;

  [[nodiscard]] virtual unsigned index() const = 0;

  /// Runs the guest until it exits. First finishes the access of the last MMIO exit.
  virtual VmExit run() = 0;

  /// Gives the value of the last MmioReadExit. @pre the last exit was one.
  virtual void complete_mmio_read(uint64_t value) = 0;

  /// Gives what x0 holds after the last HypercallExit; all other registers keep what they hold. @pre the last exit was one.
  virtual Result<void> complete_hypercall(uint64_t x0) = 0;

  /// Finishes the access of the last exit, whether a value or an abort answered it, without entering the guest, so that
  /// registers and PC are consistent.
  virtual void finish_mmio() = 0;

  /// While set, `run` returns InterruptedExit at once, having finished a pending MMIO access. @thread any.
  virtual void set_immediate_exit(bool immediate) = 0;

  /// Makes the guest take a synchronous external abort for the access of the last exit.
  virtual Result<void> inject_external_abort() = 0;
};

}  // namespace tandem
