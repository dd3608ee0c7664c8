// SPDX-License-Identifier: Apache-2.0
#include "pv/host/kernel_vcpu_state.hpp"

namespace tandem::pv {

Result<std::unique_ptr<VcpuStateBackend>> KernelVcpuState::create(KernelRecords& records) {
  if (!records.can_be_kept()) {
    return fail(Errc::kUnsupported, "this host's KVM keeps no records");
  }
  MappedRegion region = TANDEM_TRY(
      MappedRegion::map(kVcpuStateRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE));
  return std::unique_ptr<VcpuStateBackend>(new KernelVcpuState(records, std::move(region)));
}

void KernelVcpuState::activate(unsigned vcpu) {
  // It fails only if the host cannot give back a page of the region. Then the record stays 0, which is always right.
  static_cast<void>(records_.keep(vcpu, true));
}

void KernelVcpuState::deactivate(unsigned vcpu) {
  // As above, and then nobody can read a record in that page either.
  static_cast<void>(records_.keep(vcpu, false));
}

}  // namespace tandem::pv
