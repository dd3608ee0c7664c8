// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/vcpu/vcpu.hpp"

struct kvm_run;

namespace tandem {

/// Optional features of a vCPU, as they are in use.
struct VcpuFeatures {
  bool sve = false;
  bool pauth = false;
  bool pmu = false;
};

/// A vCPU of KVM. Its registers are at their reset values after `create`, and after each `reset`.
class KvmVcpu final : public Vcpu {
 public:
  /// What this host can give a vCPU.
  static VcpuFeatures supported_features(const Kvm& kvm);

  /// Creates and initialises vCPU `index`; all but vCPU 0 are off until the guest's PSCI CPU_ON.
  static Result<std::unique_ptr<KvmVcpu>> create(const KvmVm& vm, unsigned index, VcpuFeatures features);

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The affinity fields of MPIDR_EL1, as the device tree's `reg` and PSCI use them.
  [[nodiscard]] uint64_t mpidr() const { return mpidr_; }

  /// ID_AA64MMFR0_EL1 as the guest reads it.
  [[nodiscard]] Result<uint64_t> id_aa64mmfr0() const;

  /// Gives the vCPU a PMU with its overflow interrupt at `intid` (a PPI). @pre the vGIC is initialised.
  Result<void> init_pmu(devices::Intid intid) const;

  /// Whether KVM can tell the guest of this vCPU's stolen time.
  [[nodiscard]] bool has_stolen_time() const;
  /// Has KVM keep the vCPU's stolen time at `addr`, for a guest that asks for it. Once in a vCPU's life: it outlasts resets.
  /// @pre  there is writable memory behind `addr`, which is a multiple of 64.
  Result<void> set_stolen_time_addr(GuestAddr addr) const;

  /// Resets all registers. @pre parked.
  Result<void> reset();

  /// Sets where the vCPU starts, and its first argument, as the kernel's boot protocol has it.
  /// @spec  Linux Documentation/arch/arm64/booting.rst, "Call the kernel image"
  Result<void> set_entry(GuestAddr pc, uint64_t x0) const;

  [[nodiscard]] unsigned index() const override { return index_; }
  VmExit run() override;
  void complete_mmio_read(uint64_t value) override;
  Result<void> complete_hypercall(uint64_t x0) override;
  void finish_mmio() override;
  void set_immediate_exit(bool immediate) override;
  Result<void> inject_external_abort() override;

 private:
  KvmVcpu(UniqueFd fd, MappedRegion run, unsigned index, VcpuFeatures features)
      : fd_(std::move(fd)), run_(std::move(run)), index_(index), features_(features) {}
  Result<void> init();
  Result<void> set_register(uint64_t id, uint64_t value) const;
  Result<uint64_t> read_register(uint64_t id) const;
  [[nodiscard]] kvm_run& shared() const;
  VmExit decode_exit();
  VmExit decode_mmio();
  VmExit decode_hypercall() const;
  VmExit decode_system_event() const;

  UniqueFd fd_;
  MappedRegion run_;
  unsigned index_;
  VcpuFeatures features_;
  uint64_t mpidr_ = 0;
  uint32_t target_ = 0;
  bool access_pending_ = false;  ///< What the last exit came to, a value or an abort, is not in the registers yet.
};

}  // namespace tandem
