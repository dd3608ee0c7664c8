// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_vgic.hpp"

#include <array>

#include "vmm/kvm/gic_registers.hpp"
#include "vmm/kvm/kvm_uapi.hpp"

namespace tandem {
namespace {

using namespace gic;

/// A register bank with a fixed number of bits for each interrupt.
struct Bank {
  uint64_t offset;
  unsigned bits_per_intid;
  enum class OnReset : uint8_t { kInitialValue, kWriteOnes, kWriteZeros } on_reset;
  enum class In : uint8_t { kBoth, kV2, kV3 } in = In::kBoth;
};
/// In the order in which a reset writes them.
constexpr std::array kBanks{
    Bank{kGicdIcenabler, 1, Bank::OnReset::kWriteOnes},
    Bank{kGicdIsenabler, 1, Bank::OnReset::kInitialValue},  // KVM starts with SGIs enabled
    Bank{kGicdIcpendr, 1, Bank::OnReset::kWriteOnes, Bank::In::kV2},
    Bank{kGicdIspendr, 1, Bank::OnReset::kWriteZeros, Bank::In::kV3},  // from userspace, a v3's ISPENDR takes zeros too
    Bank{kGicdIcactiver, 1, Bank::OnReset::kWriteOnes},
    Bank{kGicdIgroupr, 1, Bank::OnReset::kInitialValue},
    Bank{kGicdIpriorityr, 8, Bank::OnReset::kInitialValue},
    Bank{kGicdItargetsr, 8, Bank::OnReset::kInitialValue, Bank::In::kV2},
    Bank{kGicdIcfgr, 2, Bank::OnReset::kInitialValue},
};

constexpr uint64_t kAllOnes32 = 0xffffffff;

}  // namespace

HostGic HostGic::probe(const KvmVm& vm) {
  return {.v2 = vm.has_device(KVM_DEV_TYPE_ARM_VGIC_V2), .v3 = vm.has_device(KVM_DEV_TYPE_ARM_VGIC_V3)};
}

Result<std::unique_ptr<KvmVgic>> KvmVgic::create(const KvmVm& vm, GicVersion version, bool with_its,
                                                 const VgicLayout& layout) {
  UniqueFd fd = TANDEM_TRY(version == GicVersion::kV3 ? vm.create_device(KVM_DEV_TYPE_ARM_VGIC_V3, "GICv3")
                                                      : vm.create_device(KVM_DEV_TYPE_ARM_VGIC_V2, "GICv2"));
  UniqueFd its_fd;
  if (with_its) {
    its_fd = TANDEM_TRY(vm.create_device(KVM_DEV_TYPE_ARM_VGIC_ITS, "ITS"));
  }
  std::unique_ptr<KvmVgic> vgic(new KvmVgic(std::move(fd), std::move(its_fd), version, layout));
  TANDEM_TRY(vgic->place());
  return vgic;
}

Result<void> KvmVgic::place() const {
  const uint64_t distributor = layout_.distributor.base().value();
  const bool v3 = version_ == GicVersion::kV3;
  TANDEM_TRY(set_device_attr(fd_.get(), KVM_DEV_ARM_VGIC_GRP_ADDR,
                             v3 ? KVM_VGIC_V3_ADDR_TYPE_DIST : KVM_VGIC_V2_ADDR_TYPE_DIST, &distributor,
                             "(distributor)"));
  if (v3) {
    const uint64_t redistributors = layout_.redistributors.base().value();
    TANDEM_TRY(set_device_attr(fd_.get(), KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_REDIST, &redistributors,
                               "(redistributors)"));
  } else {
    const uint64_t cpu_interface = layout_.cpu_interface.base().value();
    TANDEM_TRY(set_device_attr(fd_.get(), KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V2_ADDR_TYPE_CPU, &cpu_interface,
                               "(CPU interface)"));
  }
  TANDEM_TRY(
      set_device_attr(fd_.get(), KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0, &layout_.interrupt_count, "(number of interrupts)"));
  return its_fd_ ? place_its() : Result<void>();
}

Result<void> KvmVgic::place_its() const {
  const uint64_t its = layout_.its.base().value();
  TANDEM_TRY(set_device_attr(its_fd_.get(), KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_ITS_ADDR_TYPE, &its, "(ITS)"));
  return set_device_attr(its_fd_.get(), KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, nullptr, "(ITS init)");
}

Result<void> KvmVgic::init(std::span<const std::unique_ptr<KvmVcpu>> vcpus) {
  vcpus_ = vcpus;
  TANDEM_TRY(set_device_attr(fd_.get(), KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, nullptr, "(vGIC init)"));
  // Writing the implementation's id back makes KVM accept group registers of a GICv2 from userspace.
  Register iidr{KVM_DEV_ARM_VGIC_GRP_DIST_REGS, kGicdIidr, 0};
  TANDEM_TRY(read(iidr));
  TANDEM_TRY(write(iidr));
  return list_reset_values();
}

Result<void> KvmVgic::list_reset_values() {
  reset_values_.push_back({KVM_DEV_ARM_VGIC_GRP_DIST_REGS, kGicdCtlr, 0});
  for (const auto& vcpu : vcpus_) {
    const bool v3 = version_ == GicVersion::kV3;
    TANDEM_TRY(list_banks(v3 ? KVM_DEV_ARM_VGIC_GRP_REDIST_REGS : KVM_DEV_ARM_VGIC_GRP_DIST_REGS,
                          vcpu_attr(*vcpu) + (v3 ? kGicrSgiFrame : 0), 0, kPrivateIntids));
    TANDEM_TRY(list_cpu_interface(*vcpu));
  }
  TANDEM_TRY(list_banks(KVM_DEV_ARM_VGIC_GRP_DIST_REGS, 0, kPrivateIntids, layout_.interrupt_count));
  if (version_ == GicVersion::kV3) {
    for (uint32_t word = 2 * kPrivateIntids; word < 2 * layout_.interrupt_count; ++word) {
      reset_values_.push_back({KVM_DEV_ARM_VGIC_GRP_DIST_REGS, kGicdIrouter + word * sizeof(uint32_t), 0});
    }
  }
  return {};
}

Result<void> KvmVgic::list_banks(uint32_t group, uint64_t base_attr, uint32_t first_intid, uint32_t end_intid) {
  const Bank::In other_version = version_ == GicVersion::kV3 ? Bank::In::kV2 : Bank::In::kV3;
  for (const Bank& bank : kBanks) {
    if (bank.in == other_version) {
      continue;
    }
    const uint32_t intids_per_word = 32 / bank.bits_per_intid;
    for (uint32_t intid = first_intid; intid < end_intid; intid += intids_per_word) {
      Register reg{group, base_attr + bank.offset + uint64_t{intid} * bank.bits_per_intid / 8, 0};
      if (bank.on_reset == Bank::OnReset::kInitialValue) {
        TANDEM_TRY(read(reg));
      } else if (bank.on_reset == Bank::OnReset::kWriteOnes) {
        reg.value = kAllOnes32;
      }
      reset_values_.push_back(reg);
    }
  }
  return {};
}

Result<void> KvmVgic::list_cpu_interface(const KvmVcpu& vcpu) {
  const uint32_t group = version_ == GicVersion::kV3 ? KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS : KVM_DEV_ARM_VGIC_GRP_CPU_REGS;
  for (const uint64_t attr : TANDEM_TRY(cpu_interface_registers(vcpu))) {
    Register reg{group, vcpu_attr(vcpu) | attr, 0};
    TANDEM_TRY(read(reg));
    reset_values_.push_back(reg);
  }
  if (version_ == GicVersion::kV2) {
    for (uint64_t word = 0; word < 4; ++word) {
      const uint64_t attr = vcpu_attr(vcpu) | (kGicdCpendsgir + word * sizeof(uint32_t));
      reset_values_.push_back({KVM_DEV_ARM_VGIC_GRP_DIST_REGS, attr, kAllOnes32});
    }
  }
  return {};
}

Result<std::vector<uint64_t>> KvmVgic::cpu_interface_registers(const KvmVcpu& vcpu) const {
  if (version_ == GicVersion::kV2) {
    return std::vector(kGiccRegisters.begin(), kGiccRegisters.end());
  }
  Register control{KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS, vcpu_attr(vcpu) | kIccCtlr, 0};
  TANDEM_TRY(read(control));
  std::vector<uint64_t> registers(kIccRegisters.begin(), kIccRegisters.end());
  for (unsigned n = 0; n < active_priority_registers(control.value); ++n) {
    registers.push_back(icc_ap0r(n));
    registers.push_back(icc_ap1r(n));
  }
  return registers;
}

Result<void> KvmVgic::reset() {
  if (version_ == GicVersion::kV3) {
    TANDEM_TRY(with_context(reset_lpis(), "reset LPIs"));
  }
  for (const Register& reg : reset_values_) {
    TANDEM_TRY(with_context(write(reg), "reset vgic"));
  }
  return {};
}

/// EnableLPIs comes first: KVM refuses to change the LPI tables, or to reset the ITS, under enabled LPIs.
Result<void> KvmVgic::reset_lpis() const {
  for (const auto& vcpu : vcpus_) {
    const uint64_t base = vcpu_attr(*vcpu);
    TANDEM_TRY(write({KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, base | kGicrCtlr, 0}));
    for (const uint64_t table : {kGicrPropbaser, kGicrPendbaser}) {
      TANDEM_TRY(write({KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, base | table, 0}));
      TANDEM_TRY(write({KVM_DEV_ARM_VGIC_GRP_REDIST_REGS, base | (table + 4), 0}));
    }
  }
  if (its_fd_) {
    return set_device_attr(its_fd_.get(), KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_ITS_CTRL_RESET, nullptr,
                           "(ITS reset)");
  }
  return {};
}

uint64_t KvmVgic::vcpu_attr(const KvmVcpu& vcpu) const {
  if (version_ == GicVersion::kV2) {
    return uint64_t{vcpu.index()} << KVM_DEV_ARM_VGIC_CPUID_SHIFT;
  }
  // The attribute holds the affinity as Aff3.Aff2.Aff1.Aff0 in 32 bits; MPIDR has Aff3 at bit 32.
  const uint64_t mpidr = vcpu.mpidr();
  const uint64_t affinity = ((mpidr >> 8) & 0xff000000) | (mpidr & 0x00ffffff);
  return affinity << KVM_DEV_ARM_VGIC_V3_MPIDR_SHIFT;
}

Result<void> KvmVgic::write(const Register& reg) const {
  // KVM takes the address of a u32 or a u64, by group; on a little-endian host one object serves for both.
  const int fd = reg.group == KVM_DEV_ARM_VGIC_GRP_ITS_REGS ? its_fd_.get() : fd_.get();
  return set_device_attr(fd, reg.group, reg.attr, &reg.value, fmt::format("register {:#x}", reg.attr));
}

Result<void> KvmVgic::read(Register& reg) const {
  reg.value = 0;
  const int fd = reg.group == KVM_DEV_ARM_VGIC_GRP_ITS_REGS ? its_fd_.get() : fd_.get();
  return read_device_attr(fd, reg.group, reg.attr, &reg.value, fmt::format("register {:#x}", reg.attr));
}

}  // namespace tandem
