// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/register_set.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/fake_register_file.hpp"

namespace tandem {
namespace {

using register_id::system;

constexpr RegisterId kPc = register_id::kArm64 | register_id::kSizeU64 | (uint64_t{register_id::kCore} << 16) | 64;
constexpr RegisterId kPsciVersion =
    register_id::kArm64 | register_id::kSizeU64 | (uint64_t{register_id::kFirmware} << 16);
constexpr RegisterId kMidr = system(3, 0, 0, 0, 0);
constexpr RegisterId kPfr0 = system(3, 0, 0, 4, 0);
constexpr RegisterId kVbar = system(3, 0, 12, 0, 0);
constexpr RegisterId kTcr2 = system(3, 0, 2, 0, 3);
constexpr RegisterId kPmcntenset = system(3, 3, 9, 12, 1);
constexpr RegisterId kPmcntenclr = system(3, 3, 9, 12, 2);

class RegisterSetTest : public ::testing::Test {
 protected:
  RegisterSetTest() {
    for (FakeRegisterFile* const vcpu : {&source_, &target_}) {
      vcpu->set(kPc, 0);
      vcpu->set(kMidr, 0x411fd0c0);
      vcpu->set(kVbar, 0);
    }
  }
  RegisterSet saved() const {
    RegisterSet set = RegisterSet::read_from(source_).value();
    set.note_reset_values(RegisterSet::read_from(fresh_).value());
    return set;
  }
  std::string refusal() {
    const auto written = saved().write_to(target_);
    EXPECT_FALSE(written);
    return written ? "" : written.error().message();
  }
  size_t place(RegisterId id) const {
    return static_cast<size_t>(std::ranges::find(target_.writes, id) - target_.writes.begin());
  }

  FakeRegisterFile source_;
  FakeRegisterFile fresh_;  // as the source was at reset
  FakeRegisterFile target_;
};

TEST_F(RegisterSetTest, ValuesArriveOnTheOtherHost) {
  source_.set(kPc, 0x4008'0000);
  source_.set(kVbar, 0xffff'8000'0000'1000);
  ASSERT_TRUE(saved().write_to(target_));
  EXPECT_EQ(target_.values, source_.values);
}

TEST_F(RegisterSetTest, CountersAreNotSaved) {
  source_.set(register_id::kVirtualCounter, 77);
  source_.set(register_id::kPhysicalCounter, 78);
  source_.set(register_id::kVirtualCompare, 79);
  const RegisterSet set = saved();
  EXPECT_FALSE(set.registers().contains(register_id::kVirtualCounter));
  EXPECT_FALSE(set.registers().contains(register_id::kPhysicalCounter));
  EXPECT_TRUE(set.registers().contains(register_id::kVirtualCompare));
}

TEST_F(RegisterSetTest, FirmwareAndIdentityComeFirstAndTimersLast) {
  for (FakeRegisterFile* const vcpu : {&source_, &target_}) {
    vcpu->set(kPsciVersion, 0x10001);
    vcpu->set(register_id::kVirtualCompare, 5);
    vcpu->set(register_id::kVirtualControl, 1);
  }
  ASSERT_TRUE(saved().write_to(target_));
  EXPECT_LT(place(kPsciVersion), place(kMidr));
  EXPECT_LT(place(kMidr), place(kPc));
  EXPECT_LT(place(kVbar), place(register_id::kVirtualCompare));
  EXPECT_LT(place(register_id::kVirtualCompare), place(register_id::kVirtualControl));
}

TEST_F(RegisterSetTest, AFixedRegisterOfTheSameValueIsFine) {
  target_.refused = {kMidr};
  EXPECT_TRUE(saved().write_to(target_));
}

TEST_F(RegisterSetTest, AllThatTheHostRefusesIsListedWithBothValues) {
  source_.set(kPfr0, 0x1122);
  target_.set(kPfr0, 0x1111);
  target_.set(kMidr, 0x410fd083);
  target_.fixed = {kMidr, kPfr0};
  EXPECT_EQ(refusal(),
            "this host's CPU differs in MIDR_EL1 (saved 0x411fd0c0, here 0x410fd083), "
            "ID_AA64PFR0_EL1 (saved 0x1122, here 0x1111)");
}

TEST_F(RegisterSetTest, ARegisterThatTheHostLacksIsRefusedByName) {
  source_.set(kTcr2, 0x10);
  fresh_.set(kTcr2, 0);
  EXPECT_EQ(refusal(), "this host's CPU differs in TCR2_EL1 (saved 0x10, not there)");
}

TEST_F(RegisterSetTest, ARegisterThatTheHostLacksIsFineWithItsResetValue) {
  source_.set(kTcr2, 0x10);
  fresh_.set(kTcr2, 0x10);
  EXPECT_TRUE(saved().write_to(target_));
}

TEST_F(RegisterSetTest, ARegisterThatIsNewKeepsItsResetValue) {
  target_.set(kTcr2, 0x20);
  ASSERT_TRUE(saved().write_to(target_));
  EXPECT_EQ(target_.get(kTcr2), 0x20U);
  EXPECT_EQ(place(kTcr2), target_.writes.size());
}

TEST_F(RegisterSetTest, VectorLengthsAreComparedOnly) {
  source_.set(register_id::kSveVectorLengths, 0xb);
  target_.set(register_id::kSveVectorLengths, 0xb);
  target_.refused = {register_id::kSveVectorLengths};
  EXPECT_TRUE(saved().write_to(target_));
  target_.set(register_id::kSveVectorLengths, 3);
  EXPECT_EQ(refusal(), "this host's CPU differs in KVM_REG_ARM64_SVE_VLS (saved 0xb, here 0x3)");
}

TEST_F(RegisterSetTest, CountersOfThePmuAreEnabledAsTheyWere) {
  source_.set(kPmcntenset, 0b0101);
  source_.set(kPmcntenclr, 0b0101);
  target_.set(kPmcntenset, 0b0010);
  target_.set(kPmcntenclr, 0b0010);
  ASSERT_TRUE(saved().write_to(target_));
  EXPECT_EQ(target_.get(kPmcntenset), 0b0101U);
}

TEST_F(RegisterSetTest, AnotherNumberOfEventCountersIsRefused) {
  class KeepsItsNumber final : public RegisterFile {
   public:
    Result<std::vector<RegisterId>> list() const override { return std::vector{register_id::kPmcr}; }
    Result<void> read(RegisterId, std::span<std::byte> out) const override {
      const uint64_t four_counters = 4U << 11;
      std::memcpy(out.data(), &four_counters, out.size());
      return {};
    }
    Result<void> write(RegisterId, std::span<const std::byte>) override { return {}; }
  };
  source_.values.clear();
  source_.set(register_id::kPmcr, 6U << 11);
  KeepsItsNumber target;
  const auto written = saved().write_to(target);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message(), "this host's CPU differs in PMCR_EL0 (saved 0x3000, here 0x2000)");
}

}  // namespace
}  // namespace tandem
