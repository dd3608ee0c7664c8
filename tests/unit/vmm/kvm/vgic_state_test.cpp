// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/vgic_state.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

class VgicStateTest : public ::testing::Test {
 protected:
  void expect_corrupt(const std::string& message) {
    const auto taken = take_registers(state_);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), Errc::kCorrupt);
    EXPECT_EQ(taken.error().message(), message);
  }
  KvmVgicStateV1 state_{.groups = {1, 1, 5}, .attrs = {0, 8, 8}, .values = {7, 0, 9}};
};

TEST_F(VgicStateTest, RegistersAreKnownByGroupAndPlace) {
  const auto loaded = load_state<KvmVgicStateV1>(save_state(state_));
  ASSERT_TRUE(loaded);
  const auto taken = take_registers(*loaded);
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken, (VgicRegisters{{{1, 0}, 7}, {{1, 8}, 0}, {{5, 8}, 9}}));
}

TEST_F(VgicStateTest, ARegisterThatIsThereTwiceIsRefused) {
  state_.groups.back() = 1;
  expect_corrupt("group 1 register 0x8 is there twice");
}

TEST_F(VgicStateTest, ListsOfDifferentLengthsAreRefused) {
  state_.values.pop_back();
  expect_corrupt("the lists of the vGIC's registers have 3, 3 and 2 entries");
  state_.attrs.pop_back();
  expect_corrupt("the lists of the vGIC's registers have 3, 2 and 2 entries");
}

}  // namespace
}  // namespace tandem
