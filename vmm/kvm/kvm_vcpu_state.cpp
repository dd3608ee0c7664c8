// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_uapi.hpp"
#include "vmm/kvm/kvm_vcpu.hpp"
#include "vmm/vcpu/vcpu_state.hpp"

namespace tandem {

/// Another VM has it: in this one, KVM's values may have been changed by a restore, and all vCPUs may have run.
Result<const RegisterSet*> KvmVcpu::reset_registers() const {
  std::optional<RegisterSet>& known = vm_.reset_registers();
  if (!known) {
    const GuestAddr last_addr((uint64_t{1} << vm_.ipa_bits()) - 1);
    const auto vm = TANDEM_TRY(KvmVm::create(vm_.kvm(), last_addr));
    const auto vcpu = TANDEM_TRY(KvmVcpu::create(*vm, 0, features_));
    known = TANDEM_TRY(RegisterSet::read_from(vcpu->registers_));
  }
  return &*known;
}

Result<StateRecord> KvmVcpu::save() {
  KvmVcpuStateV1 state;
  RegisterSet registers = TANDEM_TRY(RegisterSet::read_from(registers_));
  registers.note_reset_values(*TANDEM_TRY(with_context(reset_registers(), "values of a reset")));
  put_registers(registers, state);

  kvm_mp_state mp_state{};
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_GET_MP_STATE, "KVM_GET_MP_STATE", &mp_state));
  state.mp_state = mp_state.mp_state;
  kvm_vcpu_events events{};
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_GET_VCPU_EVENTS, "KVM_GET_VCPU_EVENTS", &events));
  state.serror_pending = events.exception.serror_pending != 0;
  state.serror_has_esr = events.exception.serror_has_esr != 0;
  state.serror_esr = events.exception.serror_esr;
  return save_state(std::move(state));
}

Result<void> KvmVcpu::restore(const StateRecord& record) {
  const auto state = TANDEM_TRY(load_state<KvmVcpuStateV1>(record));
  const RegisterSet registers = TANDEM_TRY(take_registers(state));
  TANDEM_TRY(init());
  TANDEM_TRY(registers.write_to(registers_));
  kvm_vcpu_events events{};
  events.exception.serror_pending = state.serror_pending ? 1 : 0;
  events.exception.serror_has_esr = state.serror_pending && state.serror_has_esr ? 1 : 0;
  events.exception.serror_esr = events.exception.serror_has_esr != 0 ? state.serror_esr : 0;
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_SET_VCPU_EVENTS, "KVM_SET_VCPU_EVENTS", &events));
  kvm_mp_state mp_state{};
  mp_state.mp_state = state.mp_state;
  TANDEM_TRY(kvm_ioctl(fd_.get(), KVM_SET_MP_STATE, "KVM_SET_MP_STATE", &mp_state));
  access_pending_ = false;
  return {};
}

}  // namespace tandem
