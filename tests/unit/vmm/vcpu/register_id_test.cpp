// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/register_id.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using register_id::system;

constexpr RegisterId in_group(register_id::Group group, uint64_t size, uint64_t number) {
  return register_id::kArm64 | size | (uint64_t{group} << register_id::kGroupShift) | number;
}

struct NameCase {
  const char* label;
  RegisterId id;
  const char* name;
};
class RegisterNameTest : public ::testing::TestWithParam<NameCase> {};
TEST_P(RegisterNameTest, IsThatOfTheManual) { EXPECT_EQ(name_of(GetParam().id), GetParam().name); }
INSTANTIATE_TEST_SUITE_P(
    Table, RegisterNameTest,
    ::testing::Values(NameCase{"Identity", system(3, 0, 0, 4, 0), "ID_AA64PFR0_EL1"},
                      NameCase{"UnknownIdentity", system(3, 0, 0, 7, 7), "S3_0_C0_C7_7"},
                      NameCase{"Breakpoint", system(2, 0, 0, 15, 5), "DBGBCR15_EL1"},
                      NameCase{"Watchpoint", system(2, 0, 0, 3, 6), "DBGWVR3_EL1"},
                      NameCase{"EventCounter", system(3, 3, 14, 11, 6), "PMEVCNTR30_EL0"},
                      NameCase{"EventType", system(3, 3, 14, 12, 0), "PMEVTYPER0_EL0"},
                      NameCase{"CycleFilter", system(3, 3, 14, 15, 7), "PMCCFILTR_EL0"},
                      NameCase{"SwappedCounter", system(3, 3, 14, 3, 2), "CNTVCT_EL0"},
                      NameCase{"SwappedCompare", system(3, 3, 14, 0, 2), "CNTV_CVAL_EL0"},
                      NameCase{"X30", in_group(register_id::kCore, register_id::kSizeU64, 60), "X30"},
                      NameCase{"Pc", in_group(register_id::kCore, register_id::kSizeU64, 64), "PC"},
                      NameCase{"V31", in_group(register_id::kCore, uint64_t{4} << 52, 208), "V31"},
                      NameCase{"Fpsr", in_group(register_id::kCore, register_id::kSizeU32, 212), "FPSR"},
                      NameCase{"CacheSize", in_group(register_id::kDemux, register_id::kSizeU32, 3), "CCSIDR_EL1[3]"},
                      NameCase{"Psci", in_group(register_id::kFirmware, register_id::kSizeU64, 0),
                               "KVM_REG_ARM_PSCI_VERSION"},
                      NameCase{"Bitmap", in_group(register_id::kFirmwareFeatures, register_id::kSizeU64, 2),
                               "KVM_REG_ARM_VENDOR_HYP_BMAP"},
                      NameCase{"NewFirmware", in_group(register_id::kFirmware, register_id::kSizeU64, 9),
                               "firmware register 0x140009"},
                      NameCase{"Z31", in_group(register_id::kSve, uint64_t{8} << 52, 31 << 5), "Z31"},
                      NameCase{"P15", in_group(register_id::kSve, uint64_t{5} << 52, 0x400 + (15 << 5)), "P15"},
                      NameCase{"Ffr", in_group(register_id::kSve, uint64_t{5} << 52, 0x600), "FFR"},
                      NameCase{"VectorLengths", register_id::kSveVectorLengths, "KVM_REG_ARM64_SVE_VLS"},
                      NameCase{"NewGroup", in_group(register_id::Group{0x17}, register_id::kSizeU64, 1),
                               "register 0x6030000000170001"}),
    [](const auto& test) { return test.param.label; });

struct ClassCase {
  const char* label;
  RegisterId id;
  RegisterClass expected;
};
class RegisterClassTest : public ::testing::TestWithParam<ClassCase> {};
TEST_P(RegisterClassTest, SaysHowItIsRestored) { EXPECT_EQ(class_of(GetParam().id), GetParam().expected); }
INSTANTIATE_TEST_SUITE_P(
    Table, RegisterClassTest,
    ::testing::Values(ClassCase{"Midr", system(3, 0, 0, 0, 0), RegisterClass::kIdentity},
                      ClassCase{"Ctr", system(3, 3, 0, 0, 1), RegisterClass::kIdentity},
                      ClassCase{"Csselr", system(3, 2, 0, 0, 0), RegisterClass::kPlain},
                      ClassCase{"Breakpoint", system(2, 0, 0, 0, 4), RegisterClass::kPlain},
                      ClassCase{"Sctlr", system(3, 0, 1, 0, 0), RegisterClass::kPlain},
                      ClassCase{"Pmcr", register_id::kPmcr, RegisterClass::kPmuControl},
                      ClassCase{"Pmcntenset", system(3, 3, 9, 12, 1), RegisterClass::kPlain},
                      ClassCase{"Pmcntenclr", system(3, 3, 9, 12, 2), RegisterClass::kPmuClear},
                      ClassCase{"VirtualCounter", register_id::kVirtualCounter, RegisterClass::kCounter},
                      ClassCase{"PhysicalCounter", register_id::kPhysicalCounter, RegisterClass::kCounter},
                      ClassCase{"VirtualCompare", register_id::kVirtualCompare, RegisterClass::kTimerCompare},
                      ClassCase{"PhysicalControl", register_id::kPhysicalControl, RegisterClass::kTimerControl},
                      ClassCase{"VectorLengths", register_id::kSveVectorLengths, RegisterClass::kVectorLengths},
                      ClassCase{"Z0", in_group(register_id::kSve, uint64_t{8} << 52, 0), RegisterClass::kPlain}),
    [](const auto& test) { return test.param.label; });

TEST(RegisterIdTest, TheNumberHasTheSize) {
  EXPECT_EQ(size_bytes_of(register_id::kPmcr), 8U);
  EXPECT_EQ(size_bytes_of(register_id::kSveVectorLengths), 64U);
}

}  // namespace
}  // namespace tandem
