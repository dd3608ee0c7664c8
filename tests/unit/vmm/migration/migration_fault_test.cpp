// SPDX-License-Identifier: Apache-2.0
// Every fault at every message of a migration, in both directions.
#include <gtest/gtest.h>

#include "tests/unit/vmm/migration/migration_rig.hpp"

namespace tandem::migration {
namespace {

using Kind = MigrationOutcome::Kind;

/// Long enough for any step here, short enough to wait for it some hundred times. That it passes too early on a slow
/// machine changes nothing of what is asserted.
constexpr std::chrono::milliseconds kShort{60};
constexpr MigrationLimits kShortLimits{.message = kShort, .work = kShort, .reclaim = 3 * kShort, .farewell = kShort};

struct FaultCase {
  const char* name;
  ChannelFault fault;
  bool at_source;
  DiskKind disk;
};

class MigrationFaultTest : public testing::TestWithParam<FaultCase> {
 protected:
  static unsigned message_count(bool of_source) {
    MigrationRig rig;
    script(rig);
    rig.run();
    EXPECT_TRUE(rig.moved()) << rig.outcome.reason;
    return of_source ? rig.source_messages : rig.target_messages;
  }
  static void script(MigrationRig& rig) {
    rig.source.writes = {{1, 2, 3, 7}, {2, 8}};
    rig.wishes.downtime = std::chrono::nanoseconds(0);  // rounds follow until nothing is written any more
  }
};

void expect_exactly_one(MigrationRig& rig) {
  const bool source_is_alive = rig.outcome.kind == Kind::kStays;
  if (rig.target.is_running()) {
    EXPECT_TRUE(rig.same_ram());
    EXPECT_EQ(rig.target.state().size(), 2U);
    EXPECT_FALSE(source_is_alive) << "both run";
    EXPECT_FALSE(rig.source.is_running()) << "both run";
  } else {
    EXPECT_FALSE(rig.moved()) << "neither runs";
    EXPECT_FALSE(*rig.received) << "the receiver says it has a machine that does not run";
  }
  if (source_is_alive) {
    EXPECT_TRUE(rig.source.is_as_before());
  }
  EXPECT_EQ(rig.source.is_left_to_user(), rig.outcome.kind == Kind::kUnknown);
}

TEST_P(MigrationFaultTest, LeavesExactlyOneMachineAndOneLock) {
  const FaultCase& row = GetParam();
  const unsigned count = message_count(row.at_source);
  ASSERT_GT(count, row.at_source ? 15U : 6U);
  for (unsigned message = 0; message < count; ++message) {
    SCOPED_TRACE(testing::Message() << "message " << message << " of " << count);
    MigrationRig rig(row.disk);
    script(rig);
    rig.limits = kShortLimits;
    rig.run({.of_source = row.at_source ? row.fault : ChannelFault::kNone,
             .of_target = row.at_source ? ChannelFault::kNone : row.fault,
             .at_message = message});
    expect_exactly_one(rig);
    EXPECT_FALSE(rig.moved() && !rig.target.is_running());
    if (!rig.moved()) {
      EXPECT_FALSE(rig.outcome.reason.empty());
    }
    if (row.disk == DiskKind::kWritable) {
      EXPECT_NE(rig.shared.owner(), SharedDisk::Owner::kNobody);
      EXPECT_EQ(rig.shared.owner() == SharedDisk::Owner::kTarget, rig.target.is_running());
      EXPECT_TRUE(rig.target.is_running() || rig.source.is_running()) << "with a disk, somebody can always go on";
    }
  }
}

constexpr FaultCase kCases[] = {
    {"SourceCloses", ChannelFault::kClose, true, DiskKind::kWritable},
    {"SourceIsReset", ChannelFault::kReset, true, DiskKind::kWritable},
    {"SourceSendsGarbage", ChannelFault::kGarbage, true, DiskKind::kWritable},
    {"SourceStalls", ChannelFault::kStall, true, DiskKind::kWritable},
    {"TargetCloses", ChannelFault::kClose, false, DiskKind::kWritable},
    {"TargetIsReset", ChannelFault::kReset, false, DiskKind::kWritable},
    {"TargetSendsGarbage", ChannelFault::kGarbage, false, DiskKind::kWritable},
    {"TargetStalls", ChannelFault::kStall, false, DiskKind::kWritable},
    {"SourceClosesWithoutDisk", ChannelFault::kClose, true, DiskKind::kNone},
    {"SourceStallsWithoutDisk", ChannelFault::kStall, true, DiskKind::kNone},
    {"TargetClosesWithoutDisk", ChannelFault::kClose, false, DiskKind::kNone},
    {"TargetSendsGarbageWithoutDisk", ChannelFault::kGarbage, false, DiskKind::kNone},
    {"TargetStallsWithoutDisk", ChannelFault::kStall, false, DiskKind::kNone},
};
INSTANTIATE_TEST_SUITE_P(Faults, MigrationFaultTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(MigrationFaultTest, AMachineThatItsUserPausedStaysPausedAfterAnyFailure) {
  for (unsigned message = 0; message < 12; ++message) {
    MigrationRig rig;
    rig.source.paused_by_user = true;
    ASSERT_TRUE(rig.source.resume_after_failure());
    rig.limits = kShortLimits;
    rig.run({.of_source = ChannelFault::kClose, .at_message = message});
    if (!rig.moved()) {
      EXPECT_FALSE(rig.source.is_running());
    }
  }
}

}  // namespace
}  // namespace tandem::migration
