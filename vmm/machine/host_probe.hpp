// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vmm/kvm/kvm_vcpu.hpp"
#include "vmm/machine/host_offer.hpp"

namespace tandem {

/// Vector lengths as a spec has them, and as KVM has them.
std::vector<unsigned> quadwords_of(const std::optional<SveVectorLengths>& lengths);
/// @pre  each is from 1 to 512.
SveVectorLengths vector_lengths_of(std::span<const unsigned> quadwords);

/// What this host's KVM can give a guest, found by means of a VM that is gone again.
Result<HostOffer> probe_host(const Kvm& kvm);

/// Refuses a machine that this host cannot have.
/// @errors  Errc::kUnsupported: all that the host lacks, in one line. As /dev/kvm is.
Result<void> require_host_fits(const MachineSpec& spec);

}  // namespace tandem
