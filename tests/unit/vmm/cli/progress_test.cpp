// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/progress.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using std::chrono::seconds;

constexpr uint64_t kMib = 1U << 20;

TEST(ProgressLineTest, ShowsRateAndRemainingTime) {
  EXPECT_EQ(progress_line({"writing RAM", 128 * kMib, 512 * kMib}, seconds(2), 200),
            "writing RAM [######..................]  25%  64 MiB/s  6 s left");
  EXPECT_EQ(progress_line({"writing RAM", kMib, 512 * kMib}, seconds(1), 200),
            "writing RAM [........................]   0%  1 MiB/s  8:31 min left");
}

TEST(ProgressLineTest, TheFirstSecondHasNoRate) {
  EXPECT_EQ(progress_line({"reading", 1, 2}, std::chrono::milliseconds(999), 200),
            "reading [############............]  50%");
}

TEST(ProgressLineTest, WhatHasNoKnownEndHasNoBar) {
  EXPECT_EQ(progress_line({"hello", 0, 0}, seconds(5), 200), "hello");
  EXPECT_EQ(progress_line({"hello", 7, 0}, seconds(5), 3), "hel");
}

TEST(ProgressLineTest, MoreThanAllIsAll) {
  EXPECT_EQ(progress_line({"reading", 9, 3}, seconds(0), 200), "reading [########################] 100%");
}

TEST(ProgressLineTest, FitsIntoTheLine) { EXPECT_EQ(progress_line({"reading", 1, 2}, seconds(3), 11), "reading [##"); }

}  // namespace
}  // namespace tandem::cli
