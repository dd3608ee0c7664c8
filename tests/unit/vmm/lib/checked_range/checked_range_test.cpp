// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/checked_range/checked_range.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(GuestRangeTest, RefusesEmptyAndWrappingRanges) {
  EXPECT_FALSE(GuestRange::create(GuestAddr(0), 0));
  EXPECT_FALSE(GuestRange::create(GuestAddr(UINT64_MAX), 2));
  EXPECT_FALSE(GuestRange::create(GuestAddr(1), UINT64_MAX + uint64_t{0} + 1));
}

TEST(GuestRangeTest, MayEndAtTheLastAddress) {
  const auto range = GuestRange::create(GuestAddr(UINT64_MAX), 1);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->last(), GuestAddr(UINT64_MAX));
  EXPECT_TRUE(GuestRange::create(GuestAddr(1), UINT64_MAX));
}

TEST(GuestRangeTest, ContainsItsEdgesAndNothingBeyond) {
  constexpr auto kRange = GuestRange::fixed(0x1000, 0x1000);
  EXPECT_FALSE(kRange.contains(GuestAddr(0xfff)));
  EXPECT_TRUE(kRange.contains(GuestAddr(0x1000)));
  EXPECT_TRUE(kRange.contains(GuestAddr(0x1fff)));
  EXPECT_FALSE(kRange.contains(GuestAddr(0x2000)));
}

TEST(GuestRangeTest, AContainedRangeMayEndExactlyAtTheEnd) {
  constexpr auto kRange = GuestRange::fixed(0x1000, 0x1000);
  EXPECT_TRUE(kRange.contains(GuestRange::fixed(0x1ff8, 8)));
  EXPECT_FALSE(kRange.contains(GuestRange::fixed(0x1ff9, 8)));
  EXPECT_FALSE(kRange.contains(GuestRange::fixed(0xff8, 8)));
}

TEST(GuestRangeTest, NeighboursDoNotOverlap) {
  constexpr auto kRange = GuestRange::fixed(0x1000, 0x1000);
  EXPECT_FALSE(kRange.overlaps(GuestRange::fixed(0x2000, 1)));
  EXPECT_FALSE(kRange.overlaps(GuestRange::fixed(0xfff, 1)));
  EXPECT_TRUE(kRange.overlaps(GuestRange::fixed(0x1fff, 1)));
}

TEST(GuestAddrTest, PlusRefusesToWrap) {
  EXPECT_EQ(GuestAddr(UINT64_MAX - 1).plus(1), GuestAddr(UINT64_MAX));
  EXPECT_FALSE(GuestAddr(UINT64_MAX).plus(1));
}

}  // namespace
}  // namespace tandem
