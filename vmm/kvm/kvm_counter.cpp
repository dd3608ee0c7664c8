// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_counter.hpp"

#include "vmm/kvm/kvm_uapi.hpp"
#include "vmm/kvm/vm_counter_state.hpp"

namespace tandem {

Result<std::unique_ptr<KvmCounter>> KvmCounter::create(const KvmVm& vm, const KvmVcpu& vcpu) {
  std::unique_ptr<KvmCounter> counter(new KvmCounter(vm, vcpu));
  TANDEM_TRY(with_context(counter->set(0), "start the guest's counter"));
  return counter;
}

Result<uint64_t> KvmCounter::read() const { return registers_.read_u64(register_id::kVirtualCounter); }

Result<void> KvmCounter::set(uint64_t value) {
  if (vm_.kvm().capability(kKvmCapCounterOffset) == 0) {
    return registers_.write_u64(register_id::kVirtualCounter, value);  // for all vCPUs of the VM
  }
  TANDEM_TRY(set_offset(0));
  const uint64_t host = TANDEM_TRY(read());
  return set_offset(host - value);
}

Result<void> KvmCounter::set_offset(uint64_t offset) const {
  const KvmArmCounterOffset request{.counter_offset = offset, .reserved = 0};
  TANDEM_TRY(kvm_ioctl(vm_.fd(), kKvmArmSetCounterOffset, "KVM_ARM_SET_COUNTER_OFFSET", &request));
  return {};
}

uint64_t KvmCounter::frequency_hz() {
  uint64_t hz = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz;
}

Result<StateRecord> KvmCounter::save() {
  return save_state(VmCounterStateV1{.value = TANDEM_TRY(read()), .frequency_hz = frequency_hz()});
}

Result<void> KvmCounter::restore(const StateRecord& record) {
  const auto state = TANDEM_TRY(load_state<VmCounterStateV1>(record));
  if (state.frequency_hz != frequency_hz()) {
    return fail(Errc::kUnsupported, "the saved counter runs at {} Hz, this host's at {} Hz", state.frequency_hz,
                frequency_hz());
  }
  return set(state.value);
}

}  // namespace tandem
