// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/migration_progress.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using migration::MigrationPhase;
constexpr uint64_t kMib = 1U << 20;

TEST(MigrationProgressTest, OnlyRamHasAnEndThatIsKnown) {
  EXPECT_EQ(job_progress_of({.phase = MigrationPhase::kImages, .copied_bytes = 5, .round_bytes = 9}),
            (control::JobProgress{.phase = std::string(text_of(MigrationPhase::kImages))}));
}

TEST(MigrationProgressTest, ARoundIsAPhase) {
  EXPECT_EQ(job_progress_of({.phase = MigrationPhase::kRam, .round = 1, .copied_bytes = 5, .round_bytes = 9}),
            (control::JobProgress{.phase = "copying RAM, round 1", .done = 5, .total = 9}));
}

TEST(MigrationProgressTest, RatesAreToldOnceTheyAreKnown) {
  const auto progress = job_progress_of({.phase = MigrationPhase::kRam,
                                         .round = 3,
                                         .copied_bytes = 1,
                                         .round_bytes = 2,
                                         .bandwidth = 100 * kMib,
                                         .dirty_rate = 3 * kMib,
                                         .throttle_percent = 20,
                                         .expected_downtime = std::chrono::microseconds(1500)});
  EXPECT_EQ(progress.phase, "copying RAM, round 3");
  EXPECT_EQ(progress.details, "100 MiB/s, guest writes 3 MiB/s, rest takes 2 ms, throttle 20 %");
}

}  // namespace
}  // namespace tandem::cli
