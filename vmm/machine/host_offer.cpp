// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/host_offer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "vmm/machine/board_layout.hpp"

namespace tandem {
namespace {

/// Address bits of the machine's last byte of RAM.
unsigned ipa_bits_of(const MachineSpec& spec) {
  return static_cast<unsigned>(std::bit_width(board::kRamBase.value() + spec.memory_bytes - 1));
}

std::string gics_of(const HostOffer& host) {
  return host.gic_v2 && host.gic_v3 ? "v2 and v3" : host.gic_v3 ? "v3" : host.gic_v2 ? "v2" : "none";
}

}  // namespace

std::vector<std::string> differences(const MachineSpec& saved, const HostOffer& host) {
  std::vector<std::string> lines;
  const auto differ = [&lines](std::string_view part, std::string_view was, std::string_view is) {
    lines.push_back(fmt::format("{}: the machine has {}, this host {}", part, was, is));
  };
  const auto need = [&differ](std::string_view part, bool saved_has, bool host_has) {
    if (saved_has && !host_has) {
      differ(part, "it", "does not");
    }
  };
  if (saved.gic == GicChoice::kV3 ? !host.gic_v3 : !host.gic_v2) {
    differ("interrupt controller", saved.gic == GicChoice::kV3 ? "GIC v3" : "GIC v2", gics_of(host));
  }
  need("SVE", saved.cpu.sve, !host.sve_quadwords.empty());
  if (saved.cpu.sve && !host.sve_quadwords.empty() &&
      !std::ranges::includes(host.sve_quadwords, saved.cpu.sve_quadwords)) {
    differ("SVE vector lengths (in 128 bits)", fmt::format("{}", fmt::join(saved.cpu.sve_quadwords, ",")),
           fmt::format("{}", fmt::join(host.sve_quadwords, ",")));
  }
  need("pointer authentication", saved.cpu.pauth, host.pauth);
  need("PMU", saved.cpu.pmu, host.pmu);
  need("stolen time", saved.pv_time, host.stolen_time);
  need("PV vCPU state (hypercalls that KVM forwards)", saved.pv_vcpu_state != VcpuStateChoice::kOff,
       host.forwards_hypercalls);
  if (const unsigned bits = ipa_bits_of(saved); bits > host.ipa_bits) {
    differ("guest-physical address bits", fmt::format("{}", bits), fmt::format("{}", host.ipa_bits));
  }
  return lines;
}

}  // namespace tandem
