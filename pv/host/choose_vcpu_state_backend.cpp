// SPDX-License-Identifier: Apache-2.0
#include "pv/host/choose_vcpu_state_backend.hpp"

namespace tandem::pv {

Result<VcpuStateBackendChoice> choose_vcpu_state_backend(std::span<const NamedVcpuStateBackend> candidates,
                                                         const VcpuStateBackendFactory& last_resort) {
  std::string reasons;
  for (const NamedVcpuStateBackend& candidate : candidates) {
    auto made = candidate.create();
    if (made) {
      return VcpuStateBackendChoice{.backend = std::move(*made), .why_not_better = {}};
    }
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", candidate.name, made.error().message());
  }
  if (!last_resort) {
    return fail(Errc::kUnsupported, "{}", reasons);
  }
  return VcpuStateBackendChoice{.backend = TANDEM_TRY(last_resort()), .why_not_better = std::move(reasons)};
}

}  // namespace tandem::pv
