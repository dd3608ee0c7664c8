// SPDX-License-Identifier: Apache-2.0
// Both sides of a migration with each other, on a connection that works.
#include <gtest/gtest.h>

#include "tests/unit/vmm/migration/migration_rig.hpp"

namespace tandem::migration {
namespace {

using Kind = MigrationOutcome::Kind;
using testing::Test;

class MigrationTest : public Test {
 protected:
  MigrationRig rig_;
};

TEST_F(MigrationTest, MovesRamStateAndImagesAndLeavesOneMachine) {
  rig_.run();
  EXPECT_TRUE(rig_.moved()) << rig_.outcome.reason;
  ASSERT_TRUE(*rig_.received) << rig_.received->error().message();
  EXPECT_EQ(**rig_.received, MigrationReceiver::End::kArrived);
  EXPECT_TRUE(rig_.target.is_running());
  EXPECT_FALSE(rig_.source.is_running());
  EXPECT_TRUE(rig_.same_ram());
  EXPECT_EQ(rig_.target.state(), rig_.source.state);
  ASSERT_EQ(rig_.target.images().size(), 2U);
  EXPECT_EQ(rig_.target.images()[0].role, "kernel");
  EXPECT_EQ(contents_of(rig_.target.images()[0].image), std::string(kMaxImagePieceBytes + 10, 'k'));
  EXPECT_EQ(contents_of(rig_.target.images()[1].image), "initrd");
  EXPECT_EQ(rig_.shared.owner(), SharedDisk::Owner::kTarget);
}

TEST_F(MigrationTest, AMachineThatItsUserPausedArrivesPaused) {
  rig_.source.paused_by_user = true;
  rig_.run();
  EXPECT_TRUE(rig_.moved()) << rig_.outcome.reason;
  EXPECT_TRUE(rig_.target.is_paused());
}

TEST_F(MigrationTest, CopiesAgainWhatTheGuestWritesMeanwhile) {
  rig_.source.writes = {{0, 1, 2, 3, 4, 5}, {1, 2}, {11}};
  rig_.wishes.downtime = std::chrono::nanoseconds(0);
  rig_.run();
  EXPECT_TRUE(rig_.moved()) << rig_.outcome.reason;
  EXPECT_TRUE(rig_.same_ram());
  EXPECT_EQ(rig_.outcome.report.rounds, 5U);  // all, three times what was written, what saving wrote
  EXPECT_EQ(rig_.outcome.report.copied_bytes, (MigrationRig::kPages + 6 + 2 + 1 + 1) * FakeMigrationSource::kPageBytes);
}

TEST_F(MigrationTest, StopsTheGuestAtOnceIfTheRestFitsTheDowntime) {
  rig_.source.writes = {{0, 1, 2, 3, 4, 5}};
  rig_.wishes.downtime = std::chrono::hours(1);
  rig_.run();
  EXPECT_TRUE(rig_.moved()) << rig_.outcome.reason;
  EXPECT_TRUE(rig_.same_ram());
  EXPECT_EQ(rig_.outcome.report.rounds, 2U);
}

TEST_F(MigrationTest, APageThatBecomesZeroIsZeroOnTheOtherSide) {
  rig_.source.before_look = [this]() -> Result<void> {
    rig_.source.clear_page(2);
    return {};
  };
  rig_.run();
  EXPECT_TRUE(rig_.moved()) << rig_.outcome.reason;
  EXPECT_TRUE(rig_.same_ram());
  EXPECT_TRUE(is_zero(std::span(rig_.target.ram()).subspan(2 * 4096, 4096)));
}

TEST_F(MigrationTest, CompressesAndComparesRamIfWanted) {
  rig_.wishes.compress = ChunkEncoder::Compress::kZstd;
  rig_.wishes.verify_ram = true;
  rig_.run();
  EXPECT_TRUE(rig_.moved()) << rig_.outcome.reason;
  EXPECT_TRUE(rig_.same_ram());
  EXPECT_TRUE(rig_.outcome.report.ram_compared);
}

TEST_F(MigrationTest, RamThatDiffersAtTheEndKeepsTheMachineHere) {
  rig_.wishes.verify_ram = true;
  rig_.source.writes_after_the_log = {3};
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "RAM on the other side is not the same");
  EXPECT_TRUE(rig_.source.is_as_before());
  EXPECT_FALSE(rig_.target.is_running());
  EXPECT_EQ(rig_.shared.owner(), SharedDisk::Owner::kSource);
}

TEST_F(MigrationTest, ReceiversReasonsReachTheSenderBeforeAnythingIsSent) {
  rig_.source.spec = "another machine";
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "the receiver cannot have this machine: no disk for id disk0; SVE is not there");
  EXPECT_FALSE(*rig_.received);
  EXPECT_FALSE(rig_.target.was_prepared());
  EXPECT_FALSE(rig_.source.logged_writes());
}

TEST_F(MigrationTest, AFailedRestoreIsTheSendersReason) {
  rig_.target.restore_error = Error(Errc::kUnsupported, "vcpu0: ID_AA64PFR0_EL1: refused");
  rig_.source.paused_by_user = true;
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "the other side gave up: vcpu0: ID_AA64PFR0_EL1: refused");
  EXPECT_TRUE(rig_.source.is_as_before());
}

TEST_F(MigrationTest, OnlyCheckingMovesNothing) {
  rig_.wishes.check_only = true;
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kChecked);
  EXPECT_TRUE(rig_.outcome.differences.empty());
  ASSERT_TRUE(*rig_.received);
  EXPECT_EQ(**rig_.received, MigrationReceiver::End::kChecked);
  EXPECT_FALSE(rig_.target.was_prepared());
  EXPECT_TRUE(rig_.source.is_running());
}

TEST_F(MigrationTest, CheckingReportsEveryDifference) {
  rig_.wishes.check_only = true;
  rig_.source.spec = "another machine";
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kChecked);
  EXPECT_EQ(rig_.outcome.differences, (std::vector<std::string>{"no disk for id disk0", "SVE is not there"}));
}

TEST_F(MigrationTest, AGuestThatEndsMeanwhileFailsTheMigrationWithThatReason) {
  rig_.source.before_look = []() -> Result<void> { return fail(Errc::kClosed, "the guest powered off"); };
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "the guest powered off");
  EXPECT_EQ(rig_.received->error().message(), "the other side gave up: the guest powered off");
}

TEST_F(MigrationTest, CancellingLeavesTheMachineHere) {
  rig_.observer.when_shown = [this](const MigrationProgress& progress) {
    if (progress.phase == MigrationPhase::kRam) {
      EXPECT_TRUE(rig_.cancellation->request("cancelled"));
    }
  };
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "cancelled");
  EXPECT_TRUE(rig_.source.is_as_before());
  EXPECT_FALSE(rig_.target.is_running());
}

TEST_F(MigrationTest, CancellingIsTooLateOnceTheHandOverBegins) {
  bool too_late = false;
  rig_.observer.when_shown = [&](const MigrationProgress& progress) {
    too_late = progress.phase == MigrationPhase::kOver && !rig_.cancellation->request("cancelled");
  };
  rig_.run();
  EXPECT_TRUE(rig_.moved());
  EXPECT_TRUE(too_late);
}

TEST_F(MigrationTest, TimeThatIsUpLeavesTheMachineHere) {
  rig_.wishes.timeout = std::chrono::nanoseconds(0);
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "kernel: not done in the time of --timeout");
}

TEST_F(MigrationTest, AFailureOfSavingLeavesTheMachineHere) {
  rig_.source.save_error = Error(Errc::kIo, "vgic: refused");
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_EQ(rig_.outcome.reason, "vgic: refused");
  EXPECT_TRUE(rig_.source.is_as_before());
}

TEST_F(MigrationTest, AFailureOfUnlockingDisksLeavesTheMachineHere) {
  rig_.source.release_error = Error(Errc::kIo, "disk0: cannot be unlocked");
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_TRUE(rig_.source.is_as_before());
  EXPECT_EQ(rig_.shared.owner(), SharedDisk::Owner::kSource);
}

TEST_F(MigrationTest, AnUnreachableDowntimeThrottlesMoreAndMoreAndThenGivesUp) {
  std::vector<size_t> all(MigrationRig::kPages);
  for (size_t page = 0; page < all.size(); ++page) {
    all[page] = page;
  }
  rig_.source.writes.assign(200, all);
  rig_.wishes.downtime = std::chrono::nanoseconds(1);
  rig_.run();
  EXPECT_EQ(rig_.outcome.kind, Kind::kStays);
  EXPECT_NE(rig_.outcome.reason.find("faster than it can be copied"), std::string::npos) << rig_.outcome.reason;
  EXPECT_EQ(rig_.source.throttles(), (std::vector<unsigned>{20, 40, 60, 80, 90, 95, 99, 0}));
  EXPECT_EQ(rig_.outcome.report.throttle_percent, 99U);
  EXPECT_TRUE(rig_.source.is_as_before());
}

TEST_F(MigrationTest, ReportAddsUpAndHasALineForEachFigure) {
  rig_.run();
  const MigrationReport& report = rig_.outcome.report;
  EXPECT_GE(report.total, report.downtime.total());
  EXPECT_GT(report.downtime.remainder.count(), 0);
  EXPECT_GT(report.sent_bytes, kMaxImagePieceBytes);
  const std::string text = report.text();
  for (const char* word : {"total", "sent", "RAM copied", "throttle", "downtime", "hand-over"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace tandem::migration
