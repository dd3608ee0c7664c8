// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/deadline/deadline.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tandem {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(DeadlineTest, NeverHasNotPassedAndLetsPollWaitForEver) {
  const Deadline never;
  EXPECT_FALSE(never.has_passed());
  EXPECT_EQ(never.poll_timeout_ms(), -1);
}

TEST(DeadlineTest, OneInThePastHasPassedAndLetsPollNotWait) {
  const Deadline past(-seconds(1));
  EXPECT_TRUE(past.has_passed());
  EXPECT_EQ(past.poll_timeout_ms(), 0);
}

TEST(DeadlineTest, PollIsToldTheMillisecondsThatAreLeft) {
  const Deadline later(hours(1));
  EXPECT_FALSE(later.has_passed());
  EXPECT_LE(later.poll_timeout_ms(), 3'600'000);
  EXPECT_GT(later.poll_timeout_ms(), 0);
}

TEST(DeadlineTest, WhatDoesNotFitPollIsTheLongestItTakes) {
  EXPECT_EQ(Deadline(hours(24 * 365)).poll_timeout_ms(), std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace tandem
