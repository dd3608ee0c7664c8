// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/dirty_bitmap.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace tandem {
namespace {

constexpr size_t kPage = 4096;
/// 200 pages: three words, and a part of the fourth.
constexpr auto kRam = GuestRange::fixed(0x4000'0000, 200 * kPage);

GuestRange at(uint64_t offset, uint64_t size_bytes) {
  return GuestRange::create(GuestAddr(kRam.base().value() + offset), size_bytes).value();
}

class DirtyBitmapTest : public ::testing::Test {
 protected:
  DirtyBitmap bitmap_{kRam, kPage};
};

TEST_F(DirtyBitmapTest, NoPageIsMarkedAtFirst) {
  EXPECT_EQ(bitmap_.page_count(), 200U);
  EXPECT_EQ(bitmap_.count(), 0U);
  EXPECT_FALSE(bitmap_.next_run(0));
}

TEST_F(DirtyBitmapTest, EveryPageThatARangeTouchesIsMarked) {
  bitmap_.mark(at(10 * kPage - 1, 2));
  EXPECT_EQ(bitmap_.next_run(0), (PageRun{9, 2}));
  bitmap_.clear();
  bitmap_.mark(at(60 * kPage, 70 * kPage));
  EXPECT_EQ(bitmap_.next_run(0), (PageRun{60, 70}));
  EXPECT_EQ(bitmap_.count(), 70U);
}

TEST_F(DirtyBitmapTest, OnlyThePartInsideCounts) {
  bitmap_.mark(GuestRange::create(GuestAddr(0x3fff'f000), 2 * kPage).value());
  bitmap_.mark(at(199 * kPage, 5 * kPage));
  bitmap_.mark(at(200 * kPage, 1));
  bitmap_.mark(GuestRange::fixed(0, 1));
  EXPECT_TRUE(bitmap_.is_marked(0));
  EXPECT_TRUE(bitmap_.is_marked(199));
  EXPECT_EQ(bitmap_.count(), 2U);
}

TEST_F(DirtyBitmapTest, ARunIsCutAtItsLongest) {
  bitmap_.mark(PageRun{100, 30});
  EXPECT_EQ(bitmap_.next_run(0, 16), (PageRun{100, 16}));
  EXPECT_EQ(bitmap_.next_run(116, 16), (PageRun{116, 14}));
  EXPECT_FALSE(bitmap_.next_run(130, 16));
}

TEST_F(DirtyBitmapTest, ARunEndsWithTheRange) {
  bitmap_.mark_all();
  EXPECT_EQ(bitmap_.next_run(0), (PageRun{0, 200}));
  EXPECT_EQ(bitmap_.next_run(199), (PageRun{199, 1}));
  EXPECT_FALSE(bitmap_.next_run(200));
}

TEST_F(DirtyBitmapTest, ClearingARunLeavesTheRest) {
  bitmap_.mark_all();
  bitmap_.clear(PageRun{1, 198});
  EXPECT_TRUE(bitmap_.is_marked(0));
  EXPECT_TRUE(bitmap_.is_marked(199));
  EXPECT_EQ(bitmap_.count(), 2U);
}

TEST_F(DirtyBitmapTest, BitsPastTheEndAreIgnored) {
  bitmap_.mark_bits(128, std::array<uint64_t, 3>{1, ~uint64_t{0}, ~uint64_t{0}});
  EXPECT_EQ(bitmap_.next_run(0), (PageRun{128, 1}));
  EXPECT_EQ(bitmap_.next_run(129), (PageRun{192, 8}));
}

TEST_F(DirtyBitmapTest, AHarvestMovesMarksAndAddsThemToThoseThere) {
  DirtyBitmap into(kRam, kPage);
  into.mark(PageRun{0, 1});
  bitmap_.mark(PageRun{70, 2});
  bitmap_.harvest(into);
  EXPECT_EQ(bitmap_.count(), 0U);
  EXPECT_TRUE(into.is_marked(0));
  EXPECT_EQ(into.next_run(1), (PageRun{70, 2}));
}

TEST_F(DirtyBitmapTest, AMergeLeavesTheMarksOfTheOther) {
  DirtyBitmap other(kRam, kPage);
  other.mark(PageRun{3, 1});
  bitmap_.mark(PageRun{4, 1});
  bitmap_.merge(other);
  EXPECT_EQ(bitmap_.next_run(0), (PageRun{3, 2}));
  EXPECT_EQ(other.count(), 1U);
}

TEST_F(DirtyBitmapTest, NoMarkIsLostBetweenMarkersAndAHarvester) {
  DirtyBitmap all(kRam, kPage);
  std::thread even([this] {
    for (size_t page = 0; page < 200; page += 2) {
      bitmap_.mark(PageRun{page, 1});
    }
  });
  std::thread odd([this] {
    for (size_t page = 1; page < 200; page += 2) {
      bitmap_.mark(PageRun{page, 1});
    }
  });
  for (int round = 0; round < 100; ++round) {
    bitmap_.harvest(all);
  }
  even.join();
  odd.join();
  bitmap_.harvest(all);
  EXPECT_EQ(all.count(), 200U);
}

}  // namespace
}  // namespace tandem
