// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/register_id.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "vmm/lib/result/result.hpp"

namespace tandem {
namespace {

using register_id::system;

struct NamedRegister {
  RegisterId id;
  const char* name;
};

/// DDI 0487, "AArch64 System Register Descriptions"; those that KVM lists.
constexpr std::array kSystemRegisters{
    NamedRegister{system(3, 0, 0, 0, 0), "MIDR_EL1"},
    NamedRegister{system(3, 0, 0, 0, 5), "MPIDR_EL1"},
    NamedRegister{system(3, 0, 0, 0, 6), "REVIDR_EL1"},
    NamedRegister{system(3, 0, 0, 1, 0), "ID_PFR0_EL1"},
    NamedRegister{system(3, 0, 0, 1, 1), "ID_PFR1_EL1"},
    NamedRegister{system(3, 0, 0, 1, 2), "ID_DFR0_EL1"},
    NamedRegister{system(3, 0, 0, 1, 3), "ID_AFR0_EL1"},
    NamedRegister{system(3, 0, 0, 1, 4), "ID_MMFR0_EL1"},
    NamedRegister{system(3, 0, 0, 1, 5), "ID_MMFR1_EL1"},
    NamedRegister{system(3, 0, 0, 1, 6), "ID_MMFR2_EL1"},
    NamedRegister{system(3, 0, 0, 1, 7), "ID_MMFR3_EL1"},
    NamedRegister{system(3, 0, 0, 2, 0), "ID_ISAR0_EL1"},
    NamedRegister{system(3, 0, 0, 2, 1), "ID_ISAR1_EL1"},
    NamedRegister{system(3, 0, 0, 2, 2), "ID_ISAR2_EL1"},
    NamedRegister{system(3, 0, 0, 2, 3), "ID_ISAR3_EL1"},
    NamedRegister{system(3, 0, 0, 2, 4), "ID_ISAR4_EL1"},
    NamedRegister{system(3, 0, 0, 2, 5), "ID_ISAR5_EL1"},
    NamedRegister{system(3, 0, 0, 2, 6), "ID_MMFR4_EL1"},
    NamedRegister{system(3, 0, 0, 2, 7), "ID_ISAR6_EL1"},
    NamedRegister{system(3, 0, 0, 3, 0), "MVFR0_EL1"},
    NamedRegister{system(3, 0, 0, 3, 1), "MVFR1_EL1"},
    NamedRegister{system(3, 0, 0, 3, 2), "MVFR2_EL1"},
    NamedRegister{system(3, 0, 0, 3, 4), "ID_PFR2_EL1"},
    NamedRegister{system(3, 0, 0, 3, 5), "ID_DFR1_EL1"},
    NamedRegister{system(3, 0, 0, 3, 6), "ID_MMFR5_EL1"},
    NamedRegister{system(3, 0, 0, 4, 0), "ID_AA64PFR0_EL1"},
    NamedRegister{system(3, 0, 0, 4, 1), "ID_AA64PFR1_EL1"},
    NamedRegister{system(3, 0, 0, 4, 2), "ID_AA64PFR2_EL1"},
    NamedRegister{system(3, 0, 0, 4, 4), "ID_AA64ZFR0_EL1"},
    NamedRegister{system(3, 0, 0, 4, 5), "ID_AA64SMFR0_EL1"},
    NamedRegister{system(3, 0, 0, 4, 7), "ID_AA64FPFR0_EL1"},
    NamedRegister{system(3, 0, 0, 5, 0), "ID_AA64DFR0_EL1"},
    NamedRegister{system(3, 0, 0, 5, 1), "ID_AA64DFR1_EL1"},
    NamedRegister{system(3, 0, 0, 5, 4), "ID_AA64AFR0_EL1"},
    NamedRegister{system(3, 0, 0, 5, 5), "ID_AA64AFR1_EL1"},
    NamedRegister{system(3, 0, 0, 6, 0), "ID_AA64ISAR0_EL1"},
    NamedRegister{system(3, 0, 0, 6, 1), "ID_AA64ISAR1_EL1"},
    NamedRegister{system(3, 0, 0, 6, 2), "ID_AA64ISAR2_EL1"},
    NamedRegister{system(3, 0, 0, 6, 3), "ID_AA64ISAR3_EL1"},
    NamedRegister{system(3, 0, 0, 7, 0), "ID_AA64MMFR0_EL1"},
    NamedRegister{system(3, 0, 0, 7, 1), "ID_AA64MMFR1_EL1"},
    NamedRegister{system(3, 0, 0, 7, 2), "ID_AA64MMFR2_EL1"},
    NamedRegister{system(3, 0, 0, 7, 3), "ID_AA64MMFR3_EL1"},
    NamedRegister{system(3, 0, 0, 7, 4), "ID_AA64MMFR4_EL1"},
    NamedRegister{system(3, 1, 0, 0, 1), "CLIDR_EL1"},
    NamedRegister{system(3, 1, 0, 0, 7), "AIDR_EL1"},
    NamedRegister{system(3, 2, 0, 0, 0), "CSSELR_EL1"},
    NamedRegister{system(3, 3, 0, 0, 1), "CTR_EL0"},
    NamedRegister{system(2, 0, 0, 2, 0), "MDCCINT_EL1"},
    NamedRegister{system(2, 0, 0, 2, 2), "MDSCR_EL1"},
    NamedRegister{system(2, 0, 1, 1, 4), "OSLSR_EL1"},
    NamedRegister{system(3, 0, 1, 0, 0), "SCTLR_EL1"},
    NamedRegister{system(3, 0, 1, 0, 1), "ACTLR_EL1"},
    NamedRegister{system(3, 0, 1, 0, 2), "CPACR_EL1"},
    NamedRegister{system(3, 0, 1, 0, 3), "SCTLR2_EL1"},
    NamedRegister{system(3, 0, 1, 0, 5), "RGSR_EL1"},
    NamedRegister{system(3, 0, 1, 0, 6), "GCR_EL1"},
    NamedRegister{system(3, 0, 1, 2, 0), "ZCR_EL1"},
    NamedRegister{system(3, 0, 2, 0, 0), "TTBR0_EL1"},
    NamedRegister{system(3, 0, 2, 0, 1), "TTBR1_EL1"},
    NamedRegister{system(3, 0, 2, 0, 2), "TCR_EL1"},
    NamedRegister{system(3, 0, 2, 0, 3), "TCR2_EL1"},
    NamedRegister{system(3, 0, 2, 1, 0), "APIAKeyLo_EL1"},
    NamedRegister{system(3, 0, 2, 1, 1), "APIAKeyHi_EL1"},
    NamedRegister{system(3, 0, 2, 1, 2), "APIBKeyLo_EL1"},
    NamedRegister{system(3, 0, 2, 1, 3), "APIBKeyHi_EL1"},
    NamedRegister{system(3, 0, 2, 2, 0), "APDAKeyLo_EL1"},
    NamedRegister{system(3, 0, 2, 2, 1), "APDAKeyHi_EL1"},
    NamedRegister{system(3, 0, 2, 2, 2), "APDBKeyLo_EL1"},
    NamedRegister{system(3, 0, 2, 2, 3), "APDBKeyHi_EL1"},
    NamedRegister{system(3, 0, 2, 3, 0), "APGAKeyLo_EL1"},
    NamedRegister{system(3, 0, 2, 3, 1), "APGAKeyHi_EL1"},
    NamedRegister{system(3, 0, 5, 1, 0), "AFSR0_EL1"},
    NamedRegister{system(3, 0, 5, 1, 1), "AFSR1_EL1"},
    NamedRegister{system(3, 0, 5, 2, 0), "ESR_EL1"},
    NamedRegister{system(3, 0, 5, 6, 0), "TFSR_EL1"},
    NamedRegister{system(3, 0, 5, 6, 1), "TFSRE0_EL1"},
    NamedRegister{system(3, 0, 6, 0, 0), "FAR_EL1"},
    NamedRegister{system(3, 0, 7, 4, 0), "PAR_EL1"},
    NamedRegister{system(3, 0, 9, 14, 1), "PMINTENSET_EL1"},
    NamedRegister{system(3, 0, 9, 14, 2), "PMINTENCLR_EL1"},
    NamedRegister{system(3, 0, 10, 2, 0), "MAIR_EL1"},
    NamedRegister{system(3, 0, 10, 2, 2), "PIRE0_EL1"},
    NamedRegister{system(3, 0, 10, 2, 3), "PIR_EL1"},
    NamedRegister{system(3, 0, 10, 2, 4), "POR_EL1"},
    NamedRegister{system(3, 0, 10, 3, 0), "AMAIR_EL1"},
    NamedRegister{system(3, 0, 12, 0, 0), "VBAR_EL1"},
    NamedRegister{system(3, 0, 12, 1, 1), "DISR_EL1"},
    NamedRegister{system(3, 0, 13, 0, 1), "CONTEXTIDR_EL1"},
    NamedRegister{system(3, 0, 13, 0, 4), "TPIDR_EL1"},
    NamedRegister{system(3, 0, 14, 1, 0), "CNTKCTL_EL1"},
    NamedRegister{system(3, 3, 4, 2, 2), "SVCR"},
    NamedRegister{system(3, 3, 4, 4, 2), "FPMR"},
    NamedRegister{system(3, 3, 9, 12, 0), "PMCR_EL0"},
    NamedRegister{system(3, 3, 9, 12, 1), "PMCNTENSET_EL0"},
    NamedRegister{system(3, 3, 9, 12, 2), "PMCNTENCLR_EL0"},
    NamedRegister{system(3, 3, 9, 12, 3), "PMOVSCLR_EL0"},
    NamedRegister{system(3, 3, 9, 12, 4), "PMSWINC_EL0"},
    NamedRegister{system(3, 3, 9, 12, 5), "PMSELR_EL0"},
    NamedRegister{system(3, 3, 9, 13, 0), "PMCCNTR_EL0"},
    NamedRegister{system(3, 3, 9, 14, 0), "PMUSERENR_EL0"},
    NamedRegister{system(3, 3, 9, 14, 3), "PMOVSSET_EL0"},
    NamedRegister{system(3, 3, 10, 2, 4), "POR_EL0"},
    NamedRegister{system(3, 3, 13, 0, 2), "TPIDR_EL0"},
    NamedRegister{system(3, 3, 13, 0, 3), "TPIDRRO_EL0"},
    NamedRegister{register_id::kPhysicalCounter, "CNTPCT_EL0"},
    NamedRegister{register_id::kPhysicalControl, "CNTP_CTL_EL0"},
    NamedRegister{register_id::kPhysicalCompare, "CNTP_CVAL_EL0"},
    NamedRegister{register_id::kVirtualCounter, "CNTVCT_EL0"},
    NamedRegister{register_id::kVirtualControl, "CNTV_CTL_EL0"},
    NamedRegister{register_id::kVirtualCompare, "CNTV_CVAL_EL0"},
    NamedRegister{system(3, 3, 14, 15, 7), "PMCCFILTR_EL0"},
    NamedRegister{system(3, 4, 3, 0, 0), "DACR32_EL2"},
    NamedRegister{system(3, 4, 5, 0, 1), "IFSR32_EL2"},
    NamedRegister{system(3, 4, 5, 3, 0), "FPEXC32_EL2"},
};

/// api.rst, "arm64 firmware pseudo-registers": by number.
constexpr std::array kFirmwareRegisters{"KVM_REG_ARM_PSCI_VERSION", "KVM_REG_ARM_SMCCC_ARCH_WORKAROUND_1",
                                        "KVM_REG_ARM_SMCCC_ARCH_WORKAROUND_2", "KVM_REG_ARM_SMCCC_ARCH_WORKAROUND_3"};
constexpr std::array kFirmwareBitmaps{"KVM_REG_ARM_STD_BMAP", "KVM_REG_ARM_STD_HYP_BMAP", "KVM_REG_ARM_VENDOR_HYP_BMAP",
                                      "KVM_REG_ARM_VENDOR_HYP_BMAP_2"};

/// The PMU's registers that set bits, and those that clear them.
constexpr std::array kPmuTwins{
    std::pair{system(3, 0, 9, 14, 1), system(3, 0, 9, 14, 2)},  // PMINTENSET_EL1, PMINTENCLR_EL1
    std::pair{system(3, 3, 9, 12, 1), system(3, 3, 9, 12, 2)},  // PMCNTENSET_EL0, PMCNTENCLR_EL0
    std::pair{system(3, 3, 9, 14, 3), system(3, 3, 9, 12, 3)},  // PMOVSSET_EL0, PMOVSCLR_EL0
};

uint64_t group_of(RegisterId id) { return id >> register_id::kGroupShift & 0xfff; }
unsigned number_of(RegisterId id) { return static_cast<unsigned>(id & 0xffff); }

/// Fields of a system register's encoding.
struct Encoding {
  unsigned op0, op1, crn, crm, op2;
  explicit Encoding(RegisterId id)
      : op0(number_of(id) >> 14),
        op1(number_of(id) >> 11 & 7),
        crn(number_of(id) >> 7 & 15),
        crm(number_of(id) >> 3 & 15),
        op2(number_of(id) & 7) {}
};

RegisterClass class_of_system(RegisterId id) {
  using Class = RegisterClass;
  if (id == register_id::kVirtualCounter || id == register_id::kPhysicalCounter) {
    return Class::kCounter;
  }
  if (id == register_id::kVirtualCompare || id == register_id::kPhysicalCompare) {
    return Class::kTimerCompare;
  }
  if (id == register_id::kVirtualControl || id == register_id::kPhysicalControl) {
    return Class::kTimerControl;
  }
  if (id == register_id::kPmcr) {
    return Class::kPmuControl;
  }
  if (std::ranges::find(kPmuTwins, id, &std::pair<RegisterId, RegisterId>::second) != kPmuTwins.end()) {
    return Class::kPmuClear;
  }
  // The architecture's space of ID registers; op1 == 2 has CSSELR_EL1 there, which is state.
  const Encoding encoding(id);
  return encoding.op0 == 3 && encoding.crn == 0 && encoding.op1 != 2 ? Class::kIdentity : Class::kPlain;
}

std::string name_of_system(RegisterId id) {
  if (const auto named = std::ranges::find(kSystemRegisters, id, &NamedRegister::id); named != kSystemRegisters.end()) {
    return named->name;
  }
  const Encoding encoding(id);
  if (encoding.op0 == 2 && encoding.op1 == 0 && encoding.crn == 0 && encoding.op2 >= 4) {
    constexpr std::array kDebug{"DBGBVR", "DBGBCR", "DBGWVR", "DBGWCR"};
    return fmt::format("{}{}_EL1", kDebug.at(encoding.op2 - 4), encoding.crm);
  }
  if (encoding.op0 == 3 && encoding.op1 == 3 && encoding.crn == 14 && encoding.crm >= 8) {
    const unsigned counter = (encoding.crm & 3) * 8 + encoding.op2;
    return fmt::format("{}{}_EL0", encoding.crm >= 12 ? "PMEVTYPER" : "PMEVCNTR", counter);
  }
  return fmt::format("S{}_{}_C{}_C{}_{}", encoding.op0, encoding.op1, encoding.crn, encoding.crm, encoding.op2);
}

std::string name_of_sve(RegisterId id) {
  if (id == register_id::kSveVectorLengths) {
    return "KVM_REG_ARM64_SVE_VLS";
  }
  // Bits 4..0 count slices of a register, bits 9..5 registers of a kind.
  const unsigned number = number_of(id) >> 5;
  if (number < 32) {
    return fmt::format("Z{}", number);
  }
  return number < 48 ? fmt::format("P{}", number - 32) : "FFR";
}

/// Core registers are numbered by their place in struct kvm_regs, in words.
std::string name_of_core(RegisterId id) {
  const unsigned word = number_of(id);
  if (word < 62) {
    return fmt::format("X{}", word / 2);
  }
  if (word >= 84 && word < 212) {
    return fmt::format("V{}", (word - 84) / 4);
  }
  switch (word) {
    case 62:
      return "SP_EL0";
    case 64:
      return "PC";
    case 66:
      return "PSTATE";
    case 68:
      return "SP_EL1";
    case 70:
      return "ELR_EL1";
    case 72:
      return "SPSR_EL1";
    case 74:
      return "SPSR_abt";
    case 76:
      return "SPSR_und";
    case 78:
      return "SPSR_irq";
    case 80:
      return "SPSR_fiq";
    case 212:
      return "FPSR";
    case 213:
      return "FPCR";
    default:
      return fmt::format("core register {}", word);
  }
}

template <size_t N>
std::string name_in(const std::array<const char*, N>& names, RegisterId id) {
  const unsigned number = number_of(id);
  return number < N ? names.at(number) : fmt::format("firmware register {:#x}", id & 0xfffffff);
}

}  // namespace

RegisterClass class_of(RegisterId id) {
  switch (group_of(id)) {
    case register_id::kFirmware:
    case register_id::kFirmwareFeatures:
      return RegisterClass::kFirmware;
    case register_id::kDemux:
      return RegisterClass::kIdentity;
    case register_id::kSystem:
      return class_of_system(id);
    case register_id::kSve:
      return id == register_id::kSveVectorLengths ? RegisterClass::kVectorLengths : RegisterClass::kPlain;
    default:
      return RegisterClass::kPlain;
  }
}

std::optional<RegisterId> clearing_twin(RegisterId id) {
  const auto twins = std::ranges::find(kPmuTwins, id, &std::pair<RegisterId, RegisterId>::first);
  return twins == kPmuTwins.end() ? std::nullopt : std::optional(twins->second);
}

std::string name_of(RegisterId id) {
  switch (group_of(id)) {
    case register_id::kCore:
      return name_of_core(id);
    case register_id::kDemux:
      return fmt::format("CCSIDR_EL1[{}]", id & 0xff);
    case register_id::kSystem:
      return name_of_system(id);
    case register_id::kFirmware:
      return name_in(kFirmwareRegisters, id);
    case register_id::kFirmwareFeatures:
      return name_in(kFirmwareBitmaps, id);
    case register_id::kSve:
      return name_of_sve(id);
    default:
      return fmt::format("register {:#x}", id);
  }
}

}  // namespace tandem
