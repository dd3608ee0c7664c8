// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/kvm_records.hpp"

#include <algorithm>

#include "pv/abi/pv_vcpu_state.h"

namespace tandem {

bool KvmRecords::can_be_kept() const {
  return std::ranges::all_of(vcpus_, [](const auto& vcpu) { return vcpu->has_pv_state(); });
}

Result<void> KvmRecords::place(GuestAddr base) {
  for (const auto& vcpu : vcpus_) {
    const GuestAddr addr = base.plus(uint64_t{vcpu->index()} * PV_VCPU_STATE_RECORD_BYTES).value();
    TANDEM_TRY(with_context(vcpu->set_pv_state_addr(addr), fmt::format("vCPU {}", vcpu->index())));
  }
  return {};
}

Result<void> KvmRecords::keep(unsigned vcpu, bool kept) { return vcpus_[vcpu]->set_pv_state_enabled(kept); }

}  // namespace tandem
