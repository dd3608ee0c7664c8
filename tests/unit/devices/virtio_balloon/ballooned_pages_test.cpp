// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_balloon/ballooned_pages.hpp"

#include <gtest/gtest.h>

namespace tandem::devices {
namespace {

constexpr uint64_t kKiB = 1024;

std::vector<GuestRange> inflate(BalloonedPages& pages, std::vector<uint32_t> numbers) { return pages.inflate(numbers); }
void deflate(BalloonedPages& pages, std::vector<uint32_t> numbers) { pages.deflate(numbers); }

TEST(BalloonedPagesTest, OnHostsWith4KibPagesEveryPageIsComplete) {
  BalloonedPages pages(4 * kKiB);
  EXPECT_EQ(inflate(pages, {5}), (std::vector{GuestRange::fixed(5 * 4096, 4096)}));
  EXPECT_EQ(inflate(pages, {5}), (std::vector{GuestRange::fixed(5 * 4096, 4096)}));
}

TEST(BalloonedPagesTest, AdjacentPagesAreOneRange) {
  BalloonedPages pages(4 * kKiB);
  EXPECT_EQ(inflate(pages, {1, 2, 3, 7, 9, 10}),
            (std::vector{GuestRange::fixed(1 * 4096, 3 * 4096), GuestRange::fixed(7 * 4096, 4096),
                         GuestRange::fixed(9 * 4096, 2 * 4096)}));
}

TEST(BalloonedPagesTest, TheLastPageNumberDoesNotWrap) {
  BalloonedPages pages(64 * kKiB);
  std::vector<uint32_t> last(16);
  for (uint32_t index = 0; index < 16; ++index) {
    last[index] = UINT32_MAX - 15 + index;
  }
  EXPECT_EQ(inflate(pages, last), (std::vector{GuestRange::fixed((uint64_t{1} << 44) - 0x10000, 0x10000)}));
}

TEST(BalloonedPagesTest, AHostPageIsCompleteWhenAllPagesInItAreGiven) {
  BalloonedPages pages(16 * kKiB);
  EXPECT_TRUE(inflate(pages, {8, 9, 11}).empty());
  EXPECT_EQ(inflate(pages, {10}), (std::vector{GuestRange::fixed(8 * 4096, 16 * kKiB)}));
}

TEST(BalloonedPagesTest, AHostPageGivenAtOnceIsOneRange) {
  BalloonedPages pages(16 * kKiB);
  EXPECT_EQ(inflate(pages, {7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
            (std::vector{GuestRange::fixed(8 * 4096, 32 * kKiB)}));
}

TEST(BalloonedPagesTest, APageTakenBackKeepsItsHostPage) {
  BalloonedPages pages(64 * kKiB);
  EXPECT_TRUE(inflate(pages, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}).empty());
  deflate(pages, {3, 1000});
  EXPECT_TRUE(inflate(pages, {15}).empty());
  EXPECT_EQ(inflate(pages, {3}), (std::vector{GuestRange::fixed(0, 64 * kKiB)}));
}

TEST(BalloonedPagesTest, APageTakenBackAndGivenAgainIsDiscardedAgain) {
  BalloonedPages pages(16 * kKiB);
  EXPECT_EQ(inflate(pages, {0, 1, 2, 3}).size(), 1U);
  deflate(pages, {2});
  EXPECT_TRUE(inflate(pages, {4}).empty());
  EXPECT_EQ(inflate(pages, {2}).size(), 1U);
}

TEST(BalloonedPagesTest, ClearForgetsWhatWasGiven) {
  BalloonedPages pages(16 * kKiB);
  EXPECT_TRUE(inflate(pages, {0, 1, 2}).empty());
  pages.clear();
  EXPECT_TRUE(inflate(pages, {3}).empty());
}

}  // namespace
}  // namespace tandem::devices
