// SPDX-License-Identifier: Apache-2.0
#include "pv/host/pv_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "pv/host/pv_time_state.hpp"

namespace tandem::pv {
namespace {

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

class PvTimeTest : public ::testing::Test {
 protected:
  PvTime time_ = PvTime::create().value();
};

TEST_F(PvTimeTest, StartsAtZero) {
  EXPECT_EQ(time_.region().size(), PvTime::kRegionBytes);
  EXPECT_TRUE(all_zero(time_.region()));
}

TEST_F(PvTimeTest, ResetZeroesAllOfIt) {
  std::ranges::fill(time_.region(), std::byte{0x5a});
  ASSERT_TRUE(time_.reset());
  EXPECT_TRUE(all_zero(time_.region()));
}

TEST_F(PvTimeTest, WhatIsSavedIsRestoredElsewhereByteForByte) {
  uint8_t next = 0;
  std::ranges::generate(time_.region(), [&] { return std::byte{next++}; });
  PvTime target = PvTime::create().value();
  ASSERT_TRUE(target.restore(time_.save().value()));
  EXPECT_TRUE(std::ranges::equal(target.region(), time_.region()));
  EXPECT_EQ(target.save().value(), time_.save().value());
}

TEST_F(PvTimeTest, ContentsOfAnotherSizeAreRefused) {
  PvTimeStateV1 state;
  for (const size_t size : {size_t{0}, PvTime::kRegionBytes - 1, PvTime::kRegionBytes + 1}) {
    state.contents.assign(size, 1);
    const auto done = time_.restore(save_state(state));
    ASSERT_FALSE(done) << size;
    EXPECT_EQ(done.error().code(), Errc::kCorrupt);
  }
  EXPECT_TRUE(all_zero(time_.region()));
}

TEST_F(PvTimeTest, ARecordOfAnotherKindIsRefused) { EXPECT_FALSE(time_.restore(StateRecord::none("pv_time"))); }

}  // namespace
}  // namespace tandem::pv
