// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "vmm/kvm/kvm_vcpu.hpp"
#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem {

/// The counter that all vCPUs of a VM have in common, named "counter": it goes on while the VM is paused and when it is reset;
/// after a restore it goes on from the saved value.
///
/// From Linux 6.4 on the guest's physical counter is the same as its virtual one, from the start on: only so does a timer
/// that is set by the physical counter fire when it should after a restore. Under older kernels the physical counter is the
/// host's.
/// @thread  any one, with every vCPU parked.
class KvmCounter final : public Component {
 public:
  /// Starts the counter at 0. @pre no vCPU has run; `vm` and `vcpu` outlive the counter, which is read by way of `vcpu`.
  static Result<std::unique_ptr<KvmCounter>> create(const KvmVm& vm, const KvmVcpu& vcpu);

  /// What the guest would read now.
  [[nodiscard]] Result<uint64_t> read() const;
  /// Lets the guest's counter go on from `value`.
  Result<void> set(uint64_t value);
  /// Of this host. [Hz]
  [[nodiscard]] static uint64_t frequency_hz();

  [[nodiscard]] std::string_view name() const override { return "counter"; }
  Result<void> reset() override { return {}; }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  /// @errors  Errc::kUnsupported: the saved counter has another frequency.
  Result<void> restore(const StateRecord& record) override;

 private:
  KvmCounter(const KvmVm& vm, const KvmVcpu& vcpu) : vm_(vm), registers_(vcpu.fd()) {}
  Result<void> set_offset(uint64_t offset) const;

  const KvmVm& vm_;
  KvmRegisters registers_;
};

}  // namespace tandem
