// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "pv/host/vcpu_state_backend.hpp"

namespace tandem::pv {

/// Makes one back end, or says why this host has none.
using VcpuStateBackendFactory = std::function<Result<std::unique_ptr<VcpuStateBackend>>()>;

/// A back end that can be asked for.
struct NamedVcpuStateBackend {
  std::string name;
  VcpuStateBackendFactory create;
};

/// What was found.
struct VcpuStateBackendChoice {
  std::unique_ptr<VcpuStateBackend> backend;
  std::string why_not_better;  ///< Why it is the last resort, one line; else empty.
};

/// Makes the first of `candidates` that works; if none does, `last_resort`, unless that is empty.
/// @pre     there is a candidate.
/// @errors  Errc::kUnsupported: neither is there; one line with the reason of each candidate. Those of the last resort.
Result<VcpuStateBackendChoice> choose_vcpu_state_backend(std::span<const NamedVcpuStateBackend> candidates,
                                                         const VcpuStateBackendFactory& last_resort);

}  // namespace tandem::pv
