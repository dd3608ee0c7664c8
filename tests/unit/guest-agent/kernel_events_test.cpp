// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/kernel_events.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/guest-agent/agent_rig.hpp"

namespace tandem::agent {
namespace {

std::string kind_of(std::string_view record) {
  const auto event = event_in(record);
  return event ? event->kind : "";
}

TEST(KernelRecordTest, TellsOfProcessesKilledForLackOfMemory) {
  const auto event = event_in("3,812,5000001,-;Out of memory: Killed process 99 (hog) total-vm:1kB\n SUBSYSTEM=none\n");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, "oom");
  EXPECT_EQ(event->uptime_ns, 5'000'001'000U);
  EXPECT_EQ(event->text, "Out of memory: Killed process 99 (hog) total-vm:1kB");
  EXPECT_EQ(kind_of("3,812,5,-;Memory cgroup out of memory: Killed process 7 (x)\n"), "oom");
}

TEST(KernelRecordTest, TellsOfFaultsOfTheKernel) {
  EXPECT_EQ(kind_of("0,1,2,-;Internal error: Oops: 0000000096000004 [#1] SMP\n"), "oops");
  EXPECT_EQ(kind_of("0,1,2,-;Unable to handle kernel NULL pointer dereference\n"), "oops");
  EXPECT_EQ(kind_of("0,1,2,-;Kernel panic - not syncing: sysrq triggered crash\n"), "panic");
}

TEST(KernelRecordTest, WhatProgramsWroteTellsOfNothing) {
  EXPECT_EQ(kind_of("11,812,5,-;Out of memory: Killed process 99 (hog)\n"), "");
}

TEST(KernelRecordTest, OtherRecordsTellOfNothing) {
  EXPECT_EQ(kind_of("6,1,2,-;Freeing unused kernel memory\n"), "");
  EXPECT_EQ(kind_of(""), "");
  EXPECT_EQ(kind_of("6"), "");
  EXPECT_EQ(kind_of("6,1,2"), "");
  EXPECT_EQ(kind_of(";Out of memory: Killed process 9"), "");
  EXPECT_EQ(kind_of("99999999999999999999,1,2,-;Out of memory: Killed process 9"), "");
}

/// The kernel's log is a FIFO: a record for each write, as long as the reader keeps up.
class KernelEventsTest : public AgentTest {
 protected:
  KernelEventsTest() {
    EXPECT_EQ(::mkfifo(context_.events.kernel_log.c_str(), 0600), 0);
    log_.reset(::open(context_.events.kernel_log.c_str(), O_RDWR | O_CLOEXEC));
  }
  void write_record(std::string_view record) const {
    EXPECT_EQ(::write(log_.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
  }
  Event next_event() { return channel_->receive_message().value().as<Event>().value(); }

  UniqueFd log_;
};

TEST_F(KernelEventsTest, WhatTheKernelLogsIsSentWhateverItsTime) {
  write_record("3,1,7,-;Out of memory: Killed process 1 (before)\n");
  ask_for<Done>(EventsRequest{});
  EXPECT_EQ(next_event().uptime_ns, 7000U);
  write_record("3,2,8,-;Out of memory: Killed process 2 (after)\n");
  EXPECT_EQ(next_event().uptime_ns, 8000U);
}

TEST_F(KernelEventsTest, TheEndOfTheBootIsToldOnceWhetherItWasOrWillBe) {
  ask_for<Done>(EventsRequest{});
  std::ofstream(folder_ + "/boot-finished") << "";
  EXPECT_EQ(next_event().kind, "boot-finished");
  std::ofstream(folder_ + "/other") << "";
  write_record("3,1,7,-;Out of memory: Killed process 1 (x)\n");
  EXPECT_EQ(next_event().kind, "oom");
  disconnect();
  connect();
  ask_for<Done>(EventsRequest{});
  EXPECT_EQ(next_event().kind, "boot-finished");
}

}  // namespace
}  // namespace tandem::agent
