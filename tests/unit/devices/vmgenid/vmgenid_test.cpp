// SPDX-License-Identifier: Apache-2.0
#include "devices/vmgenid/vmgenid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/fakes/fake_irq_sink.hpp"

namespace tandem::devices {
namespace {

/// Random bytes that are not: each is one more than the one before.
class CountingEntropy final : public EntropySource {
 public:
  Result<void> fill(std::span<std::byte> out) override {
    if (is_empty) {
      return fail(Errc::kIo, "no entropy");
    }
    for (std::byte& byte : out) {
      byte = std::byte{next_++};
    }
    return {};
  }
  bool is_empty = false;

 private:
  uint8_t next_ = 1;
};

class VmGenIdTest : public ::testing::Test {
 protected:
  static constexpr Intid kIntid = Intid::spi(4);

  std::vector<std::byte> id() const {
    const auto bytes = device_->memory().first(VmGenId::kIdBytes);
    return {bytes.begin(), bytes.end()};
  }

  FakeIrqSink irqs_;
  CountingEntropy entropy_;
  std::unique_ptr<VmGenId> device_ = VmGenId::create("vmgenid", IrqLine(irqs_, kIntid), entropy_).value();
};

TEST_F(VmGenIdTest, StartsWithARandomIdAndZerosBehindItAndDisturbsNobody) {
  EXPECT_EQ(id().front(), std::byte{1});
  EXPECT_EQ(id().back(), std::byte{16});
  const auto rest = device_->memory().subspan(VmGenId::kIdBytes);
  EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(irqs_.call_count(), 0U);
}

TEST_F(VmGenIdTest, ARenewedIdIsAnotherOneAndInterruptsOnce) {
  const auto before = id();
  ASSERT_TRUE(device_->renew());
  EXPECT_NE(id(), before);
  EXPECT_EQ(irqs_.edge_count(kIntid), 1U);
  EXPECT_FALSE(irqs_.level(kIntid));
}

TEST_F(VmGenIdTest, WithoutEntropyTheIdStaysAndNobodyIsInterrupted) {
  const auto before = id();
  entropy_.is_empty = true;
  EXPECT_FALSE(device_->renew());
  EXPECT_EQ(id(), before);
  EXPECT_EQ(irqs_.call_count(), 0U);
}

TEST_F(VmGenIdTest, AResetKeepsTheId) {
  const auto before = id();
  ASSERT_TRUE(device_->reset());
  EXPECT_EQ(id(), before);
}

TEST_F(VmGenIdTest, ARestoredMachineHasTheSavedIdUntilItIsRenewed) {
  const auto saved_id = id();
  const StateRecord record = device_->save().value();
  const auto target = VmGenId::create("vmgenid", IrqLine(irqs_, kIntid), entropy_).value();
  ASSERT_TRUE(target->restore(record));
  EXPECT_TRUE(std::ranges::equal(target->memory().first(VmGenId::kIdBytes), saved_id));
  EXPECT_EQ(irqs_.call_count(), 0U);
}

TEST_F(VmGenIdTest, AStoreOfTheGuestIsRefused) {
  EXPECT_EQ(device_->write({0, 8}, 1).error(), BadAccess::kReadOnly);
  EXPECT_EQ(id().front(), std::byte{1});
}

TEST_F(VmGenIdTest, NodeIsTheOneLinuxKnows) {
  const FdtNode node = device_->describe(
      {.window = GuestRange::fixed(0xb02'0000, VmGenId::kWindowBytes), .intid = kIntid, .clock_phandle = 1});
  EXPECT_EQ(node.name(), "rng@b020000");
  EXPECT_EQ(node.find("interrupts")->value.back(), std::byte{1});
}

}  // namespace
}  // namespace tandem::devices
