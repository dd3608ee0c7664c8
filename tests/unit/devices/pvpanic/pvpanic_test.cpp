// SPDX-License-Identifier: Apache-2.0
#include "devices/pvpanic/pvpanic.hpp"

#include <gtest/gtest.h>

#include "devices/pvpanic/pvpanic_regs.hpp"

namespace tandem::devices {
namespace {

class PvPanicTest : public ::testing::Test, public PanicSink {
 protected:
  void on_panic() override { ++panics_; }
  void on_crash_loaded() override { ++crashes_; }

  int panics_ = 0;
  int crashes_ = 0;
  PvPanic device_{"pvpanic0", *this};
};

TEST_F(PvPanicTest, OffersBothEvents) { EXPECT_EQ(device_.read({0, 1}).value(), 3U); }

TEST_F(PvPanicTest, APanicIsReported) {
  ASSERT_TRUE(device_.write({0, 1}, pvpanic::kPanicked));
  EXPECT_EQ(panics_, 1);
  EXPECT_EQ(crashes_, 0);
}

TEST_F(PvPanicTest, ALoadedCrashKernelIsReported) {
  ASSERT_TRUE(device_.write({0, 1}, pvpanic::kCrashLoaded));
  EXPECT_EQ(panics_, 0);
  EXPECT_EQ(crashes_, 1);
}

TEST_F(PvPanicTest, UnknownEventsAreIgnored) {
  ASSERT_TRUE(device_.write({0, 1}, 0xfc));
  EXPECT_EQ(panics_ + crashes_, 0);
}

TEST_F(PvPanicTest, OnlyBytesAtTheRegisterAreAnswered) {
  EXPECT_EQ(device_.read({0, 2}).error(), BadAccess::kWidth);
  EXPECT_EQ(device_.read({1, 1}).error(), BadAccess::kNoRegister);
  EXPECT_EQ(device_.write({0, 4}, 1).error(), BadAccess::kWidth);
  EXPECT_EQ(panics_, 0);
}

TEST_F(PvPanicTest, StateThatItNeverHadIsRefused) {
  StateRecord record = device_.save().value();
  record.payload.push_back(std::byte{0});
  EXPECT_FALSE(device_.restore(record));
}

TEST_F(PvPanicTest, NodeIsTheOneLinuxKnows) {
  const FdtNode node = device_.describe(GuestRange::fixed(0x9030000, PvPanic::kWindowBytes));
  EXPECT_EQ(node.name(), "pvpanic@9030000");
  EXPECT_EQ(node.find("reg")->value.back(), std::byte{2});
}

}  // namespace
}  // namespace tandem::devices
