// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::tests {

/// What the machine that runs the tests can do. A test that needs more skips itself and says so; a test that
/// needs no more may not.
struct Capabilities {
  std::string where;         ///< For messages: `testbed max, GICv3, stock`.
  unsigned gic_version = 3;  ///< Of the guest: the only one that the host's interrupt controller supports.
  bool sve = false;
  bool pauth = false;
  bool pmu = false;
  unsigned page_size_bytes = 4096;
  std::optional<bool> pages_16k = std::nullopt;  ///< The CPU has them for guests; a machine does not tell programs.
  bool bpf = false;                              ///< The kernel lets us attach programs to its scheduler.
  bool kvm_records = false;                      ///< KVM keeps the records of PV vCPU state by itself.
  bool swap = false;                             ///< We may give the machine a swap area for a while.

  /// The back ends of PV vCPU state that know of preemption, the one that `auto` takes first.
  [[nodiscard]] std::vector<std::string> vcpu_state_back_ends() const;
};

/// What the kernel of Linux guests can do.
struct GuestKernel {
  std::string_view name;  ///< As scripts/images takes it.
  unsigned page_size_bytes;
  unsigned least_memory_mib;  ///< With which it reaches userspace from an initramfs.
  bool pvpanic;               ///< Its panic reaches the pvpanic device (PVPANIC_MMIO is built in).
  bool reads_vcpu_state;      ///< It uses PV vCPU state (kernel-patches/pv-vcpu-state).
};

/// The row of the testbed that this program runs in, or what a machine with KVM of its own says about itself.
/// @errors  ends the program when the environment names a testbed that the table does not have.
const Capabilities& capabilities();

/// The row of the kernel that scripts/test names in TANDEM_GUEST.
/// @errors  ends the program when the table does not have it.
const GuestKernel& guest_kernel();

}  // namespace tandem::tests
