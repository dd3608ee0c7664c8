// SPDX-License-Identifier: Apache-2.0
#include "pv/host/zero_vcpu_state_backend.hpp"

namespace tandem::pv {

Result<std::unique_ptr<VcpuStateBackend>> ZeroVcpuStateBackend::create() {
  MappedRegion region = TANDEM_TRY(MappedRegion::map(kVcpuStateRegionBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS));
  return std::unique_ptr<VcpuStateBackend>(new ZeroVcpuStateBackend(std::move(region)));
}

}  // namespace tandem::pv
