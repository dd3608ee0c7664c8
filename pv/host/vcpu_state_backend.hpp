// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "pv/abi/pv_vcpu_state.h"
#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::pv {

/// Size of the region [bytes]: a multiple of every page size of an arm64 host.
inline constexpr size_t kVcpuStateRegionBytes = 0x1'0000;
inline constexpr unsigned kMaxVcpuStateRecords = kVcpuStateRegionBytes / PV_VCPU_STATE_RECORD_BYTES;

/// Keeps the records of one machine's vCPUs true: `preempted` while active and wanting to run without a CPU, else 0.
///
/// A vCPU is inactive until `activate`; the record of an inactive vCPU is all zero. A vCPU may be activated before its
/// thread is attached, and stays active when it is detached. One object for each machine.
class VcpuStateBackend {
 public:
  /// What a guest may see of this back end beyond the specification's "0 is always right".
  struct Capabilities {
    bool reports_preemption;     ///< Sets `preempted` at all.
    bool reports_in_vmm_code;    ///< Sets it too while the vCPU's thread runs VMM code.
    bool needs_no_halt_polling;  ///< Is only exact on a VM whose KVM does not poll when a vCPU waits.
  };

  virtual ~VcpuStateBackend() = default;

  /// Its name as `--pv-vcpu-state` has it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;

  /// The memory that is to back the guest's region: kVcpuStateRegionBytes, aligned to host pages, one record after the other.
  /// It stays where it is for the object's life. Only the back end writes it.
  [[nodiscard]] virtual std::span<std::byte> region() = 0;

  /// Tells where the guest has the region, once it is a memory slot and before anything of the following.
  virtual Result<void> place_region(GuestAddr base) = 0;

  /// Ties the calling thread to `vcpu`. Called before the thread first enters the guest.
  /// @thread  the vCPU's own.
  virtual Result<void> attach_thread(unsigned vcpu) = 0;
  /// Unties it, before the thread ends. @thread the vCPU's own.
  virtual void detach_thread(unsigned vcpu) = 0;

  /// Starts to keep the record of `vcpu`, from 0 on if it was inactive; nothing if it is active.
  /// @thread  the vCPU's own, or any one while the vCPU is parked.
  virtual void activate(unsigned vcpu) = 0;
  /// Stops, and zeroes the record. @thread as `activate`.
  virtual void deactivate(unsigned vcpu) = 0;
};

}  // namespace tandem::pv
