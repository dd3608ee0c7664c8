// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "vmm/kvm/gic_registers.hpp"
#include "vmm/kvm/kvm_uapi.hpp"
#include "vmm/kvm/kvm_vgic.hpp"

namespace tandem {
namespace {

using namespace gic;

constexpr uint64_t kAllOnes32 = 0xffffffff;
/// A GICv2's SGIs have a source each, which SPENDSGIR sets and ISPENDR does not know.
constexpr uint64_t kPpis = 0xffff0000;
constexpr uint64_t kWordBytes = sizeof(uint32_t);

/// A bank of registers with a fixed number of bits for each interrupt.
struct Bank {
  uint64_t offset;
  unsigned bits_per_intid;
  uint64_t clear_offset;  ///< Of the bank that clears what this one sets; 0 if the bank takes zeros too.
  bool only_v2 = false;
};
/// The trigger comes before what is pending, and enabling last.
constexpr std::array kBanks{
    Bank{kGicdIgroupr, 1, 0},
    Bank{kGicdIcfgr, 2, 0},
    Bank{kGicdIpriorityr, 8, 0},
    Bank{kGicdItargetsr, 8, 0, true},
    Bank{kGicdIspendr, 1, kGicdIcpendr},
    Bank{kGicdIsactiver, 1, kGicdIcactiver},
    Bank{kGicdIsenabler, 1, kGicdIcenabler},
};

uint64_t line_level_attr(uint64_t vcpu_attr, uint32_t intid) {
  return vcpu_attr | (uint64_t{VGIC_LEVEL_INFO_LINE_LEVEL} << KVM_DEV_ARM_VGIC_LINE_LEVEL_INFO_SHIFT) | intid;
}

void append(auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); }

std::string_view name_of(uint32_t version) { return version == 3 ? "GICv3" : version == 2 ? "GICv2" : "unknown GIC"; }

}  // namespace

/// KVM's documentation has the order: arm-vgic-v3.rst, and arm-vgic-its.rst, "ITS Restore Sequence".
Result<std::vector<KvmVgic::Step>> KvmVgic::steps() const {
  constexpr uint32_t kDistributor = KVM_DEV_ARM_VGIC_GRP_DIST_REGS;
  std::vector<Step> steps{{.reg = {kDistributor, kGicdIidr, 0}}, {.reg = {kDistributor, kGicdCtlr, 0}}};
  append(steps, bank_steps(kDistributor, 0, kPrivateIntids, layout_.interrupt_count));
  if (version_ == GicVersion::kV3) {
    steps.push_back({.reg = {kDistributor, kGicdStatusr, 0}});
    for (uint64_t word = 2 * kPrivateIntids; word < 2 * layout_.interrupt_count; ++word) {
      steps.push_back({.reg = {kDistributor, kGicdIrouter + word * kWordBytes, 0}});
    }
  }
  for (const auto& vcpu : vcpus_) {
    append(steps, TANDEM_TRY(vcpu_steps(*vcpu)));
  }
  if (version_ == GicVersion::kV3) {
    append(steps, line_level_steps());
  }
  return steps;
}

Result<std::vector<KvmVgic::Step>> KvmVgic::vcpu_steps(const KvmVcpu& vcpu) const {
  const uint64_t base = vcpu_attr(vcpu);
  std::vector<Step> steps;
  if (version_ == GicVersion::kV3) {
    // The tables first: KVM takes no others once GICR_CTLR.EnableLPIs is set.
    for (const uint64_t offset : {kGicrPropbaser, kGicrPropbaser + kWordBytes, kGicrPendbaser,
                                  kGicrPendbaser + kWordBytes, kGicrStatusr, kGicrCtlr}) {
      steps.push_back({.reg = {KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, base | offset, 0}});
    }
    append(steps, bank_steps(KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, base + kGicrSgiFrame, 0, kPrivateIntids));
  } else {
    append(steps, bank_steps(KVM_DEV_ARM_VGIC_GRP_DIST_REGS, base, 0, kPrivateIntids));
    for (uint64_t word = 0; word < 4; ++word) {
      steps.push_back({.reg = {KVM_DEV_ARM_VGIC_GRP_DIST_REGS, base | (kGicdSpendsgir + word * kWordBytes), 0}});
    }
  }
  const uint32_t group = version_ == GicVersion::kV3 ? KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS : KVM_DEV_ARM_VGIC_GRP_CPU_REGS;
  for (const uint64_t attr : TANDEM_TRY(cpu_interface_registers(vcpu))) {
    steps.push_back({.reg = {group, base | attr, 0}});
  }
  return steps;
}

std::vector<KvmVgic::Step> KvmVgic::bank_steps(uint32_t group, uint64_t base_attr, uint32_t first_intid,
                                               uint32_t end_intid) const {
  const bool v2 = version_ == GicVersion::kV2;
  std::vector<Step> steps;
  for (const Bank& bank : kBanks) {
    if (bank.only_v2 && !v2) {
      continue;
    }
    const uint32_t intids_per_word = 32 / bank.bits_per_intid;
    for (uint32_t intid = first_intid; intid < end_intid; intid += intids_per_word) {
      const uint64_t place = base_attr + uint64_t{intid} * bank.bits_per_intid / 8;
      if (bank.clear_offset != 0) {
        steps.push_back({.reg = {group, place + bank.clear_offset, kAllOnes32}, .is_saved = false});
      }
      const bool has_sgis = v2 && intid == 0 && bank.offset == kGicdIspendr;
      steps.push_back({.reg = {group, place + bank.offset, 0}, .restored_bits = has_sgis ? kPpis : UINT64_MAX});
    }
  }
  return steps;
}

std::vector<KvmVgic::Step> KvmVgic::line_level_steps() const {
  std::vector<Step> steps;
  for (const auto& vcpu : vcpus_) {
    steps.push_back({.reg = {KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, line_level_attr(vcpu_attr(*vcpu), 0), 0}});
  }
  for (uint32_t intid = kPrivateIntids; intid < layout_.interrupt_count; intid += 32) {
    const uint64_t attr = line_level_attr(vcpu_attr(*vcpus_.front()), intid);
    steps.push_back({.reg = {KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, attr, 0}});
  }
  return steps;
}

/// GITS_CTLR comes last, and behind the tables. A write of GITS_CBASER resets GITS_CREADR.
std::vector<KvmVgic::Step> KvmVgic::its_steps() {
  std::vector<uint64_t> offsets{kGitsIidr, kGitsCbaser, kGitsCreadr, kGitsCwriter};
  for (unsigned n = 0; n < kGitsBaserCount; ++n) {
    offsets.push_back(kGitsBaser + n * sizeof(uint64_t));
  }
  offsets.push_back(kGitsCtlr);
  std::vector<Step> steps;
  for (const uint64_t offset : offsets) {
    steps.push_back({.reg = {KVM_DEV_ARM_VGIC_GRP_ITS_REGS, offset, 0}});
  }
  return steps;
}

Result<void> KvmVgic::control(int fd, uint64_t attr, std::string_view what) const {
  return set_device_attr(fd, KVM_DEV_ARM_VGIC_GRP_CTRL, attr, nullptr, what);
}

Result<StateRecord> KvmVgic::save() {
  if (version_ == GicVersion::kV3) {
    TANDEM_TRY(control(fd_.get(), KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES, "(save pending LPIs)"));
  }
  std::vector<Step> all = TANDEM_TRY(steps());
  if (its_fd_) {
    TANDEM_TRY(control(its_fd_.get(), KVM_DEV_ARM_ITS_SAVE_TABLES, "(save ITS tables)"));
    append(all, its_steps());
  }
  KvmVgicStateV1 state{.gic_version = version_ == GicVersion::kV3 ? 3U : 2U,
                       .vcpu_count = static_cast<uint32_t>(vcpus_.size()),
                       .interrupt_count = layout_.interrupt_count,
                       .has_its = has_its(),
                       .groups = {},
                       .attrs = {},
                       .values = {}};
  for (Step& step : all) {
    if (step.is_saved) {
      TANDEM_TRY(read(step.reg));
      state.groups.push_back(step.reg.group);
      state.attrs.push_back(step.reg.attr);
      state.values.push_back(step.reg.value);
    }
  }
  return save_state(std::move(state));
}

Result<void> KvmVgic::require_same_controller(const KvmVgicStateV1& state) const {
  const uint32_t version = version_ == GicVersion::kV3 ? 3 : 2;
  if (state.gic_version != version) {
    return fail(Errc::kUnsupported, "saved was a {}, here is a {}", name_of(state.gic_version), name_of(version));
  }
  if (state.vcpu_count != vcpus_.size()) {
    return fail(Errc::kUnsupported, "saved was a {} for {} vCPUs, here is one for {}", name_of(version),
                state.vcpu_count, vcpus_.size());
  }
  if (state.interrupt_count != layout_.interrupt_count) {
    return fail(Errc::kUnsupported, "saved was a {} with {} interrupts, here is one with {}", name_of(version),
                state.interrupt_count, layout_.interrupt_count);
  }
  if (state.has_its != has_its()) {
    return fail(Errc::kUnsupported, "saved was a GICv3 {} an ITS, here is one {}", state.has_its ? "with" : "without",
                state.has_its ? "without" : "with one");
  }
  return {};
}

Result<void> KvmVgic::restore(const StateRecord& record) {
  const auto state = TANDEM_TRY(load_state<KvmVgicStateV1>(record));
  TANDEM_TRY(require_same_controller(state));
  VgicRegisters saved = TANDEM_TRY(take_registers(state));
  TANDEM_TRY(reset());
  std::vector<Step> all = TANDEM_TRY(steps());
  if (its_fd_) {
    append(all, its_steps());
  }
  for (Step& step : all) {
    Register& reg = step.reg;
    if (step.is_saved) {
      const auto value = saved.extract({reg.group, reg.attr});
      if (value.empty()) {
        continue;  // new here: it keeps its reset value
      }
      reg.value = value.mapped() & step.restored_bits;
    }
    const bool is_its = reg.group == KVM_DEV_ARM_VGIC_GRP_ITS_REGS;
    if (is_its && reg.attr == kGitsCbaser && reg.value == 0) {
      continue;  // as after a reset; written, 0 would read as what KVM makes of it
    }
    if (is_its && reg.attr == kGitsCtlr) {
      TANDEM_TRY(control(its_fd_.get(), KVM_DEV_ARM_ITS_RESTORE_TABLES, "(restore ITS tables)"));
    }
    TANDEM_TRY(with_context(write(reg), fmt::format("saved value {:#x}", reg.value)));
  }
  for (const auto& [place, value] : saved) {
    if (value != 0) {
      return fail(Errc::kUnsupported, "this host's vGIC lacks group {} register {:#x} (saved {:#x})", place.first,
                  place.second, value);
    }
  }
  return {};
}

}  // namespace tandem
