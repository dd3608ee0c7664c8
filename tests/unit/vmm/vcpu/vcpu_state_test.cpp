// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/vcpu_state.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr RegisterId kVbar = register_id::system(3, 0, 12, 0, 0);
constexpr RegisterId kTcr2 = register_id::system(3, 0, 2, 0, 3);

class VcpuStateTest : public ::testing::Test {
 protected:
  VcpuStateTest() {
    set_.add(kVbar, {.value = std::vector<std::byte>(8, std::byte{7}), .is_reset_value = false});
    set_.add(kTcr2, {.value = std::vector<std::byte>(8), .is_reset_value = true});
    put_registers(set_, state_);
  }
  void expect_corrupt() {
    const auto taken = take_registers(state_);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), Errc::kCorrupt);
  }
  RegisterSet set_;
  KvmVcpuStateV1 state_;
};

TEST_F(VcpuStateTest, ARecordBringsBackTheRegisters) {
  const auto loaded = load_state<KvmVcpuStateV1>(save_state(state_));
  ASSERT_TRUE(loaded);
  const auto taken = take_registers(*loaded);
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken, set_);
}

TEST_F(VcpuStateTest, AMissingValueIsRefused) {
  state_.register_values.pop_back();
  expect_corrupt();
}

TEST_F(VcpuStateTest, ALeftOverValueIsRefused) {
  state_.register_values.push_back(0);
  expect_corrupt();
}

TEST_F(VcpuStateTest, AMissingFlagIsRefused) {
  state_.are_reset_values.pop_back();
  expect_corrupt();
}

TEST_F(VcpuStateTest, AnImpossibleFlagIsRefused) {
  state_.are_reset_values.front() = 2;
  expect_corrupt();
}

TEST_F(VcpuStateTest, ARegisterThatIsThereTwiceIsRefused) {
  state_.register_ids.back() = state_.register_ids.front();
  expect_corrupt();
}

TEST_F(VcpuStateTest, ACounterIsRefused) {
  state_.register_ids.back() = register_id::kVirtualCounter;
  expect_corrupt();
}

TEST_F(VcpuStateTest, AnImpossibleSizeIsRefused) {
  state_.register_ids.back() |= uint64_t{0xf} << register_id::kSizeShift;
  expect_corrupt();
}

TEST_F(VcpuStateTest, ARegisterOfAnotherArchitectureIsRefused) {
  state_.register_ids.back() ^= uint64_t{1} << 60;
  expect_corrupt();
}

}  // namespace
}  // namespace tandem
