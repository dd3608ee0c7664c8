// SPDX-License-Identifier: Apache-2.0
// A bare-metal guest that knows what is to be in its RAM moves to another process.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/harness/guest_run.hpp"
#include "tests/migration/moving_guest.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

class PayloadMigrationTest : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "migration-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A guest that writes to RAM all the time.
  MovingGuest writer() {
    return {run_command({.payload = "ram_writer", .cmdline = "pages=512", .vcpu_count = GetParam()}), folder_,
            [](unsigned) { return std::vector<std::string>{"--console", "stdio"}; }};
  }
  /// Lets the guest end, and looks at what it says.
  static void expect_nothing_lost(MovingGuest& guest) {
    ASSERT_TRUE(guest.process().wait_for("ROUND")) << guest.process().errors();
    guest.process().send("q");
    EXPECT_EQ(guest.process().wait(), 0) << guest.process().errors();
    const GuestReport report = parse_report(guest.process().output());
    EXPECT_EQ(report.failures, std::vector<std::string>{});
    EXPECT_EQ(report.passed, 1 + GetParam());
    EXPECT_EQ(report.exit, 0U);
  }

  std::string folder_;
};

TEST_P(PayloadMigrationTest, LosesNoPageOfAGuestThatWritesAllTheTime) {
  MovingGuest guest = writer();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(guest.process().wait_for("ROUND")) << guest.process().errors();
    const CommandResult moved = guest.move({"--downtime", "3000"});
    ASSERT_EQ(moved.status, 0) << moved.errors;
    EXPECT_EQ(guest.last_process().wait(), 0) << guest.last_process().errors();
  }
  expect_nothing_lost(guest);
}

TEST_P(PayloadMigrationTest, AllOfRamIsTheSameAtTheHandOver) {
  MovingGuest guest = writer();
  ASSERT_TRUE(guest.process().wait_for("ROUND")) << guest.process().errors();
  const CommandResult moved = guest.move({"--downtime", "3000", "--verify"});
  ASSERT_EQ(moved.status, 0) << moved.errors;
  EXPECT_NE(moved.output.find("compared equal"), std::string::npos) << moved.output;
  expect_nothing_lost(guest);
}

TEST_P(PayloadMigrationTest, AGuestThatWritesTooFastIsSlowedDown) {
  MovingGuest guest = writer();
  ASSERT_TRUE(guest.process().wait_for("ROUND")) << guest.process().errors();
  const CommandResult moved = guest.move({"--downtime", "20", "--compress", "zstd"});
  if (moved.status != 0) {  // no host is bound to be fast enough; then it says so, and the guest goes on
    EXPECT_NE(moved.errors.find("faster than it can be copied"), std::string::npos) << moved.errors;
  }
  expect_nothing_lost(guest);
}

TEST_P(PayloadMigrationTest, ACancelledMigrationLeavesTheGuestAsItWas) {
  MovingGuest guest = writer();
  ASSERT_TRUE(guest.process().wait_for("ROUND")) << guest.process().errors();
  const auto receiver = guest.start_receiver({"--name", "other", "--console", "none"});
  ChildProcess migration({"tandem", "migrate", guest.name(), guest.address(), "--downtime", "1"});
  CommandResult cancelled;
  do {
    cancelled = run_on_host({"tandem", "migrate", guest.name(), "--cancel"});
  } while (cancelled.status != 0 && !migration.wait(ChildProcess::Seconds(0)));
  EXPECT_EQ(migration.wait(), 1);
  EXPECT_NE(migration.errors().find("cancelled"), std::string::npos) << migration.errors();
  EXPECT_EQ(receiver->wait(), 1) << receiver->errors();
  EXPECT_NE(receiver->errors().find("the other side gave up"), std::string::npos) << receiver->errors();
  expect_nothing_lost(guest);
}

INSTANTIATE_TEST_SUITE_P(Cpus, PayloadMigrationTest, testing::Values(1U, 4U),
                         [](const auto& row) { return "Cpus" + std::to_string(row.param); });

}  // namespace
}  // namespace tandem::tests
