// SPDX-License-Identifier: Apache-2.0
// What a Linux guest that uses PV vCPU state reads of its own records, and does with it.
#include <gtest/gtest.h>

#include <string>

#include "tests/harness/capabilities.hpp"
#include "tests/system/equipped_guest.hpp"

namespace tandem::tests {
namespace {

class GuestRecordsTest : public EquippedGuestTest {
 protected:
  void SetUp() override {
    if (!guest_kernel().reads_vcpu_state) {
      GTEST_SKIP() << "needs a guest kernel that uses PV vCPU state, which this is without: " << guest_kernel().name;
    }
    EquippedGuestTest::SetUp();
  }
  /// Runs a script in the folder of what the kernel tells of its records.
  static CommandResult run_at_records(const std::string& script) {
    return guest().run(
        "grep -q ' /sys/kernel/debug ' /proc/mounts || mount -t debugfs debugfs /sys/kernel/debug;"
        " cd /sys/kernel/debug/pv_vcpu_state && { " +
        script + "; }");
  }
};

TEST_F(GuestRecordsTest, EachCpuHasOne) {
  const CommandResult cpus = run_at_records("cut -d ' ' -f 1 records");
  EXPECT_EQ(cpus.output, "0\n1\n2\n3\n") << cpus.errors;
}

TEST_F(GuestRecordsTest, CpusThatGoOffGiveTheirsUpAndHaveItBackLater) {
  const CommandResult counts = run_at_records(
      "cpus=/sys/devices/system/cpu; for i in 1 2 3 4 5 6 7 8 9 10; do"
      " echo 0 >$cpus/cpu1/online; echo 0 >$cpus/cpu3/online; wc -l <records;"
      " echo 1 >$cpus/cpu3/online; echo 1 >$cpus/cpu1/online; wc -l <records; done | sort | uniq -c | tr -s ' '");
  EXPECT_EQ(counts.output, " 10 2\n 10 4\n") << counts.errors;
}

// Two CPUs of the host, four busy vCPUs: each is switched out, and a spin for one folder's lock is given up, sooner or later.
TEST_F(GuestRecordsTest, UnderContentionAllCountsGrowAndSpinsAreGivenUp) {
  if (capabilities().vcpu_state_back_ends().empty()) {
    GTEST_SKIP() << "needs a back end that knows of preemption, which this is without: " << capabilities().where;
  }
  const CommandResult counted = run_at_records(
      "for i in 1 2 3 4 5 6 7 8; do (while [ ! -e /tmp/calm ]; do echo >/tmp/file$i; rm /tmp/file$i; done) & done;"
      " while grep -q ' 0$' records; do :; done; until [ $(cat spins_given_up) -gt 0 ]; do :; done;"
      " [ $(cat hint_true) -ge $(cat spins_given_up) ] && echo both; touch /tmp/calm; wait; rm /tmp/calm");
  EXPECT_EQ(counted.output, "both\n") << counted.errors;
}

}  // namespace
}  // namespace tandem::tests
