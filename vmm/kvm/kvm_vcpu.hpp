// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vmm/kvm/kvm_registers.hpp"
#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/lib/state/component.hpp"
#include "vmm/vcpu/vcpu.hpp"

struct kvm_run;

namespace tandem {

/// A set of SVE vector lengths: bit n % 64 of word n / 64 is for 16 * (n + 1) bytes.
using SveVectorLengths = std::array<uint64_t, 8>;

/// Optional features of a vCPU, as they are in use.
struct VcpuFeatures {
  bool sve = false;
  bool pauth = false;
  bool pmu = false;
  /// With `sve`: exactly these; all that the host has unless given.
  std::optional<SveVectorLengths> sve_vector_lengths = std::nullopt;
  bool operator==(const VcpuFeatures&) const = default;
};

/// A vCPU of KVM, named "vcpu<index>". Its registers are at their reset values after `create`, and after each `reset`.
///
/// Saved are all registers that KVM lists but the counters, which the VM has in common (see KvmCounter), whether the vCPU is
/// on, and a pending SError. `restore` is for a vCPU of the same features; its PMU must have been initialised.
class KvmVcpu final : public Vcpu, public Component {
 public:
  /// What this host can give a vCPU.
  static VcpuFeatures supported_features(const Kvm& kvm);

  /// Creates and initialises vCPU `index`; all but vCPU 0 are off until the guest's PSCI CPU_ON.
  /// @pre     `vm` outlives the vCPU.
  /// @errors  Errc::kUnsupported: the host has other vector lengths than those given.
  static Result<std::unique_ptr<KvmVcpu>> create(const KvmVm& vm, unsigned index, VcpuFeatures features);

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The affinity fields of MPIDR_EL1, as the device tree's `reg` and PSCI use them.
  [[nodiscard]] uint64_t mpidr() const { return mpidr_; }
  /// With the vector lengths that it has.
  [[nodiscard]] const VcpuFeatures& features() const { return features_; }

  /// ID_AA64MMFR0_EL1 as the guest reads it.
  [[nodiscard]] Result<uint64_t> id_aa64mmfr0() const;

  /// Gives the vCPU a PMU with its overflow interrupt at `intid` (a PPI). @pre the vGIC is initialised.
  Result<void> init_pmu(devices::Intid intid) const;

  /// Whether KVM can tell the guest of this vCPU's stolen time.
  [[nodiscard]] bool has_stolen_time() const;
  /// Has KVM keep the vCPU's stolen time at `addr`, for a guest that asks for it. Once in a vCPU's life: it outlasts resets.
  /// @pre  there is writable memory behind `addr`, which is a multiple of 64.
  Result<void> set_stolen_time_addr(GuestAddr addr) const;

  /// Whether KVM can keep this vCPU's record of PV vCPU state.
  [[nodiscard]] bool has_pv_state() const;
  /// Says where the record is. Once in the vCPU's life: it outlasts resets.
  /// @pre  there is memory behind `addr`, writable to us; `addr` is a multiple of 64.
  Result<void> set_pv_state_addr(GuestAddr addr) const;
  /// Has KVM keep the record, from 0 on, or stop and zero it. It outlasts resets, too. @pre the address is set; parked.
  Result<void> set_pv_state_enabled(bool enabled) const;

  // Component; all but `name` with the vCPU parked.
  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  /// Nothing to do: to pause a vCPU is to park its thread.
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

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
  KvmVcpu(const KvmVm& vm, UniqueFd fd, MappedRegion run, unsigned index, VcpuFeatures features);
  Result<void> init();
  Result<void> finalize_sve();
  Result<void> require_vector_lengths(const SveVectorLengths& wanted);
  /// The registers of a vCPU with these features that has not run.
  Result<const RegisterSet*> reset_registers() const;
  [[nodiscard]] kvm_run& shared() const;
  VmExit decode_exit();
  VmExit decode_mmio();
  VmExit decode_hypercall() const;
  VmExit decode_system_event() const;

  const KvmVm& vm_;
  UniqueFd fd_;
  KvmRegisters registers_;
  MappedRegion run_;
  unsigned index_;
  std::string name_;
  VcpuFeatures features_;
  uint64_t mpidr_ = 0;
  uint32_t target_ = 0;
  bool access_pending_ = false;  ///< What the last exit came to, a value or an abort, is not in the registers yet.
};

}  // namespace tandem
