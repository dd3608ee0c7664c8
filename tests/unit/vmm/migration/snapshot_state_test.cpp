// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_state.hpp"

#include <gtest/gtest.h>

#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {
namespace {

MachineState sample() {
  return {{"vcpu0", {.kind = "kvm_vcpu", .version = 3, .payload = std::vector<std::byte>(9, std::byte{7})}},
          {"rng0", StateRecord::none("virtio_rng")}};
}

TEST(SnapshotStateTest, IsReadAsItWasWritten) {
  EXPECT_EQ(decode_machine_state(encode_machine_state(sample()).value()).value(), sample());
  EXPECT_EQ(decode_machine_state(encode_machine_state({}).value()).value(), MachineState());
}

TEST(SnapshotStateTest, EveryTruncationIsRefused) {
  const auto content = encode_machine_state(sample()).value();
  for (size_t length = 0; length < content.size(); ++length) {
    EXPECT_FALSE(decode_machine_state(std::span(content).first(length))) << length;
  }
}

TEST(SnapshotStateTest, BytesBehindTheLastRecordAreRefused) {
  auto content = encode_machine_state(sample()).value();
  content.push_back({});
  EXPECT_EQ(decode_machine_state(content).error().message(), "goes on behind its last record");
}

TEST(SnapshotStateTest, AComponentTwiceIsRefused) {
  MachineState state = sample();
  state[1].component = "vcpu0";
  EXPECT_EQ(decode_machine_state(encode_machine_state(state).value()).error().message(), "vcpu0: saved twice");
}

TEST(SnapshotStateTest, ANameThatIsNoneIsRefused) {
  auto content = encode_machine_state(sample()).value();
  content[8] = std::byte{'\n'};
  EXPECT_FALSE(decode_machine_state(content));
}

TEST(SnapshotStateTest, HugeNumbersAreRefused) {
  auto content = encode_machine_state(sample()).value();
  content[3] = std::byte{0x7F};  // the number of components
  EXPECT_FALSE(decode_machine_state(content));
  content = encode_machine_state(sample()).value();
  content[7] = std::byte{0x7F};  // the length of a name
  EXPECT_FALSE(decode_machine_state(content));
}

}  // namespace
}  // namespace tandem::migration
