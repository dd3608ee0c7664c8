// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/host_probe.hpp"

#include <fmt/ranges.h>

#include "vmm/kvm/kvm_vcpu.hpp"
#include "vmm/kvm/kvm_vgic.hpp"
#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/machine/board_layout.hpp"

namespace tandem {
namespace {

constexpr unsigned kWordBits = 64;

}  // namespace

std::vector<unsigned> quadwords_of(const std::optional<SveVectorLengths>& lengths) {
  std::vector<unsigned> quadwords;
  for (unsigned bit = 0; lengths && bit < kWordBits * lengths->size(); ++bit) {
    if (((lengths->at(bit / kWordBits) >> (bit % kWordBits)) & 1) != 0) {
      quadwords.push_back(bit + 1);
    }
  }
  return quadwords;
}

SveVectorLengths vector_lengths_of(std::span<const unsigned> quadwords) {
  SveVectorLengths lengths{};
  for (const unsigned length : quadwords) {
    lengths.at((length - 1) / kWordBits) |= uint64_t{1} << ((length - 1) % kWordBits);
  }
  return lengths;
}

Result<HostOffer> probe_host(const Kvm& kvm) {
  const auto vm = TANDEM_TRY(KvmVm::create(kvm, board::kRamBase));
  const VcpuFeatures features = KvmVcpu::supported_features(kvm);
  const auto vcpu = TANDEM_TRY(KvmVcpu::create(*vm, 0, features));
  const HostGic gic = HostGic::probe(*vm);
  return HostOffer{.gic_v2 = gic.v2,
                   .gic_v3 = gic.v3,
                   .sve_quadwords = quadwords_of(vcpu->features().sve_vector_lengths),
                   .pauth = features.pauth,
                   .pmu = features.pmu,
                   .stolen_time = vcpu->has_stolen_time(),
                   .forwards_hypercalls = vm->can_forward_hypercalls(),
                   .ipa_bits = kvm.max_ipa_bits()};
}

Result<void> require_host_fits(const MachineSpec& spec) {
  const Kvm kvm = TANDEM_TRY(Kvm::open());
  if (const auto lines = differences(spec, TANDEM_TRY(probe_host(kvm))); !lines.empty()) {
    return fail(Errc::kUnsupported, "this host cannot run that machine: {}", fmt::join(lines, "; "));
  }
  return {};
}

}  // namespace tandem
