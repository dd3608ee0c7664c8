// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// Registers of the interrupt controllers by their offsets in a frame.
/// @spec  GICv3 IHI 0069H, GICv2 IHI 0048B: "Register map" of each frame
namespace tandem::gic {

inline constexpr uint64_t kGicdCtlr = 0x0;
inline constexpr uint64_t kGicdIidr = 0x8;
inline constexpr uint64_t kGicdStatusr = 0x10;
inline constexpr uint64_t kGicdIgroupr = 0x80;
inline constexpr uint64_t kGicdIsenabler = 0x100;
inline constexpr uint64_t kGicdIcenabler = 0x180;
inline constexpr uint64_t kGicdIspendr = 0x200;
inline constexpr uint64_t kGicdIcpendr = 0x280;
inline constexpr uint64_t kGicdIsactiver = 0x300;
inline constexpr uint64_t kGicdIcactiver = 0x380;
inline constexpr uint64_t kGicdIpriorityr = 0x400;
inline constexpr uint64_t kGicdItargetsr = 0x800;
inline constexpr uint64_t kGicdIcfgr = 0xc00;
inline constexpr uint64_t kGicdCpendsgir = 0xf10;
inline constexpr uint64_t kGicdSpendsgir = 0xf20;
inline constexpr uint64_t kGicdIrouter = 0x6000;

inline constexpr uint64_t kGicrCtlr = 0x0;
inline constexpr uint64_t kGicrStatusr = 0x10;
inline constexpr uint64_t kGicrPropbaser = 0x70;
inline constexpr uint64_t kGicrPendbaser = 0x78;
inline constexpr uint64_t kGicrSgiFrame = 0x10000;

inline constexpr uint64_t kGiccCtlr = 0x0;
inline constexpr uint64_t kGiccPmr = 0x4;
inline constexpr uint64_t kGiccBpr = 0x8;
inline constexpr uint64_t kGiccAbpr = 0x1c;
inline constexpr uint64_t kGiccApr0 = 0xd0;
inline constexpr std::array<uint64_t, 8> kGiccRegisters{kGiccCtlr, kGiccPmr,      kGiccBpr,      kGiccAbpr,
                                                        kGiccApr0, kGiccApr0 + 4, kGiccApr0 + 8, kGiccApr0 + 12};

inline constexpr uint64_t kGitsCtlr = 0x0;
inline constexpr uint64_t kGitsIidr = 0x4;
inline constexpr uint64_t kGitsCbaser = 0x80;
inline constexpr uint64_t kGitsCwriter = 0x88;
inline constexpr uint64_t kGitsCreadr = 0x90;
inline constexpr uint64_t kGitsBaser = 0x100;
inline constexpr unsigned kGitsBaserCount = 8;

constexpr uint64_t icc_register(unsigned op0, unsigned op1, unsigned crn, unsigned crm, unsigned op2) {
  return (op0 << 14) | (op1 << 11) | (crn << 7) | (crm << 3) | op2;
}
/// ICC_*_EL1 that every CPU interface has, in the order KVM's documentation restores them. (arm-vgic-v3.rst)
inline constexpr std::array<uint64_t, 7> kIccRegisters{
    icc_register(3, 0, 12, 12, 5),  // ICC_SRE_EL1
    icc_register(3, 0, 12, 12, 4),  // ICC_CTLR_EL1
    icc_register(3, 0, 12, 12, 6),  // ICC_IGRPEN0_EL1
    icc_register(3, 0, 12, 12, 7),  // ICC_IGRPEN1_EL1
    icc_register(3, 0, 4, 6, 0),    // ICC_PMR_EL1
    icc_register(3, 0, 12, 8, 3),   // ICC_BPR0_EL1
    icc_register(3, 0, 12, 12, 3),  // ICC_BPR1_EL1
};
inline constexpr uint64_t kIccCtlr = kIccRegisters[1];
/// ICC_AP0Rn_EL1 and ICC_AP1Rn_EL1: one for each 32 preemption levels.
constexpr uint64_t icc_ap0r(unsigned n) { return icc_register(3, 0, 12, 8, 4 + n); }
constexpr uint64_t icc_ap1r(unsigned n) { return icc_register(3, 0, 12, 9, n); }
/// How many of each there are, by ICC_CTLR_EL1.PRIbits: priority bits, less one.
constexpr unsigned active_priority_registers(uint64_t icc_ctlr) {
  const unsigned priority_bits = static_cast<unsigned>(icc_ctlr >> 8 & 7) + 1;
  return priority_bits <= 5 ? 1 : 1U << (priority_bits - 5);
}

inline constexpr uint32_t kPrivateIntids = 32;

}  // namespace tandem::gic
