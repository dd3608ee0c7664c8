// SPDX-License-Identifier: Apache-2.0
// Records of every version that was released still load, and mean what they meant: tests/golden/state/<kind>.v<N>.bin. These
// were saved from a VM of one CPU with GICv3 and ITS, on a Cortex-A72.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "vmm/kvm/vgic_state.hpp"
#include "vmm/kvm/vm_counter_state.hpp"
#include "vmm/vcpu/vcpu_state.hpp"

namespace tandem {
namespace {

template <typename State>
StateRecord recorded() {
  const std::string name = std::string(State::kKind.kind) + ".v" + std::to_string(State::kKind.version) + ".bin";
  std::ifstream stream(std::string(TANDEM_GOLDEN) + "/state/" + name, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator(stream), {}};
  const auto payload = std::as_bytes(std::span(bytes));
  return {.kind = std::string(State::kKind.kind),
          .version = State::kKind.version,
          .payload = {payload.begin(), payload.end()}};
}

TEST(StateGoldenTest, AVcpuOfVersion1LoadsAndIsStillWritten) {
  const auto state = load_state<KvmVcpuStateV1>(recorded<KvmVcpuStateV1>());
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->mp_state, 0U);
  EXPECT_FALSE(state->serror_pending);
  const auto registers = take_registers(*state);
  ASSERT_TRUE(registers) << registers.error().message();
  EXPECT_EQ(registers->registers().size(), state->register_ids.size());
  const auto midr = registers->registers().find(register_id::system(3, 0, 0, 0, 0));
  ASSERT_NE(midr, registers->registers().end());
  uint64_t value = 0;
  ASSERT_EQ(midr->second.value.size(), sizeof value);
  std::memcpy(&value, midr->second.value.data(), sizeof value);
  EXPECT_EQ(value, 0x410f'd083U);
  EXPECT_TRUE(midr->second.is_reset_value);

  KvmVcpuStateV1 again;
  again.mp_state = state->mp_state;
  put_registers(*registers, again);
  EXPECT_EQ(save_state(again), recorded<KvmVcpuStateV1>());
}

TEST(StateGoldenTest, AnInterruptControllerOfVersion1LoadsAndIsStillWritten) {
  auto state = load_state<KvmVgicStateV1>(recorded<KvmVgicStateV1>());
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->gic_version, 3U);
  EXPECT_EQ(state->vcpu_count, 1U);
  EXPECT_TRUE(state->has_its);
  const auto registers = take_registers(*state);
  ASSERT_TRUE(registers) << registers.error().message();
  EXPECT_EQ(registers->size(), state->groups.size());
  constexpr uint32_t kDistributor = 1;
  EXPECT_EQ(registers->at({kDistributor, 0}), 0x52U);  // GICD_CTLR: one security state, affinity routing, group 1 on
  EXPECT_EQ(save_state(*state), recorded<KvmVgicStateV1>());
}

TEST(StateGoldenTest, ACounterOfVersion1LoadsAndIsStillWritten) {
  auto state = load_state<VmCounterStateV1>(recorded<VmCounterStateV1>());
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->value, 0x0eec'c482U);
  EXPECT_EQ(state->frequency_hz, 62'500'000U);
  EXPECT_EQ(save_state(*state), recorded<VmCounterStateV1>());
}

}  // namespace
}  // namespace tandem
