// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/convergence.hpp"

#include <gtest/gtest.h>

namespace tandem::migration {
namespace {

using std::chrono::milliseconds;
using Next = Convergence::Next;

constexpr uint64_t kMiB = 1U << 20;

class ConvergenceTest : public testing::Test {
 protected:
  Convergence convergence_{milliseconds(400)};
};

TEST_F(ConvergenceTest, StopsWhenTheRestTakesThreeQuartersOfTheDowntime) {
  EXPECT_EQ(convergence_.after({.copied_bytes = 100 * kMiB, .duration = milliseconds(1000), .left_bytes = 30 * kMiB}),
            Next::kStop);
  EXPECT_EQ(convergence_.expected_downtime(), milliseconds(300));
  EXPECT_EQ(convergence_.bandwidth(), 100 * kMiB);
  EXPECT_EQ(convergence_.dirty_rate(), 30 * kMiB);
}

TEST_F(ConvergenceTest, GoesOnWhenTheRestTakesLonger) {
  EXPECT_EQ(convergence_.after({.copied_bytes = 100 * kMiB, .duration = milliseconds(1000), .left_bytes = 31 * kMiB}),
            Next::kAgain);
  EXPECT_EQ(convergence_.throttle_percent(), 0U);
}

TEST_F(ConvergenceTest, StopsWhenNothingIsLeftHoweverSlowTheConnection) {
  EXPECT_EQ(convergence_.after({.copied_bytes = 0, .duration = milliseconds(100'000), .left_bytes = 0}), Next::kStop);
}

TEST_F(ConvergenceTest, ASmallRoundDoesNotSpoilTheMeasuredRate) {
  convergence_.after({.copied_bytes = 100 * kMiB, .duration = milliseconds(1000), .left_bytes = 60 * kMiB});
  convergence_.after({.copied_bytes = 4096, .duration = milliseconds(10), .left_bytes = 60 * kMiB});
  EXPECT_EQ(convergence_.bandwidth(), 100 * kMiB);
}

TEST_F(ConvergenceTest, TwoRoundsWithoutProgressThrottleOneStep) {
  const Convergence::Round stuck{.copied_bytes = 100 * kMiB, .duration = milliseconds(1000), .left_bytes = 100 * kMiB};
  EXPECT_EQ(convergence_.after(stuck), Next::kAgain);
  EXPECT_EQ(convergence_.throttle_percent(), 0U);
  EXPECT_EQ(convergence_.after(stuck), Next::kAgain);
  EXPECT_EQ(convergence_.throttle_percent(), 20U);
}

TEST_F(ConvergenceTest, RoundsThatShrinkDoNotThrottle) {
  for (uint64_t left = 400; left > 100; left = left * 2 / 3) {
    EXPECT_EQ(convergence_.after({.copied_bytes = left * 3 / 2 * kMiB,
                                  .duration = milliseconds(static_cast<int64_t>(left) * 15),
                                  .left_bytes = left * kMiB}),
              Next::kAgain);
  }
  EXPECT_EQ(convergence_.throttle_percent(), 0U);
}

TEST_F(ConvergenceTest, GoodRoundsBetweenBadOnesAreNoProgress) {
  uint64_t copied = 1024;
  int rounds = 0;
  while (rounds < 1000) {
    const uint64_t left = rounds % 2 == 0 ? 600 : 1024;
    ++rounds;
    if (convergence_.after({.copied_bytes = copied * kMiB,
                            .duration = milliseconds(static_cast<int64_t>(copied)),
                            .left_bytes = left * kMiB}) != Next::kAgain) {
      break;
    }
    copied = left;
  }
  EXPECT_EQ(rounds, 1 + 7 * 2 + 30 + 1);
  EXPECT_EQ(convergence_.throttle_percent(), 99U);
}

TEST_F(ConvergenceTest, SlowProgressDoesNotThrottle) {
  for (uint64_t left = 4000; left > 400; left = left * 4 / 5) {
    EXPECT_EQ(convergence_.after({.copied_bytes = left * 5 / 4 * kMiB,
                                  .duration = milliseconds(static_cast<int64_t>(left) * 5 / 4),
                                  .left_bytes = left * kMiB}),
              Next::kAgain);
  }
  EXPECT_EQ(convergence_.throttle_percent(), 0U);
}

TEST_F(ConvergenceTest, GivesUpInTheEnd) {
  const Convergence::Round stuck{.copied_bytes = 100 * kMiB, .duration = milliseconds(1000), .left_bytes = 100 * kMiB};
  int rounds = 0;
  while (convergence_.after(stuck) == Next::kAgain && rounds < 1000) {
    ++rounds;
  }
  EXPECT_EQ(rounds, 7 * 2 + 30 - 1 + 1);
  EXPECT_EQ(convergence_.throttle_percent(), 99U);
}

}  // namespace
}  // namespace tandem::migration
