// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vmm/machine/machine_spec.hpp"

namespace tandem {

/// What a host's KVM can give a guest, as far as hosts differ in it.
struct HostOffer {
  bool gic_v2 = false;
  bool gic_v3 = false;
  std::vector<unsigned> sve_quadwords;  ///< Vector lengths of SVE [128 bits], ascending; none: no SVE.
  bool pauth = false;
  bool pmu = false;
  bool stolen_time = false;
  bool forwards_hypercalls = false;  ///< Needed for PV vCPU state.
  unsigned ipa_bits = 0;             ///< Largest guest-physical address space.
};

/// Why a host with this offer cannot have the machine `saved`, which came from another: one line each; none if it can.
/// Every line names the part, what was saved, and what there is here.
[[nodiscard]] std::vector<std::string> differences(const MachineSpec& saved, const HostOffer& host);

}  // namespace tandem
