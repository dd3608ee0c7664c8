// SPDX-License-Identifier: Apache-2.0
// What Linux sees of its machine and does with it: two guests, one with everything and one without what can be left out.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/vmm_threads.hpp"
#include "tests/system/equipped_guest.hpp"

namespace tandem::tests {
namespace {

constexpr std::string_view kPvVcpuStateNode = "pv-vcpu-state@b000000\n";

std::string device_tree_nodes(LinuxGuest& guest) { return guest.run("ls /proc/device-tree").output; }

/// Restricts the vCPUs of a machine to one CPU of the host, as long as it lives.
class OneHostCpu {
 public:
  explicit OneHostCpu(pid_t process) : threads_(vcpu_threads(process)) {
    EXPECT_FALSE(threads_.empty());
    EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    for (const pid_t thread : threads_) {
      EXPECT_TRUE(pin(thread, 0));
    }
  }
  OneHostCpu(const OneHostCpu&) = delete;
  OneHostCpu& operator=(const OneHostCpu&) = delete;
  ~OneHostCpu() {
    for (const pid_t thread : threads_) {
      ::sched_setaffinity(thread, sizeof before_, &before_);
    }
  }

 private:
  std::vector<pid_t> threads_;
  cpu_set_t before_{};
};

/// What two busy vCPUs on one CPU see of /proc/stat's steal column, sampled some seconds apart.
std::vector<unsigned long> steal_samples(LinuxGuest& guest) {
  const OneHostCpu one_cpu(guest.vmm().pid());
  const CommandResult result = guest.run(
      "while :; do :; done & first=$!; while :; do :; done & second=$!; for i in 1 2 3 4 5; do sleep 2;"
      " while read w a b c d e f g steal rest; do [ $w = cpu ] && echo $steal; done < /proc/stat; done;"
      " kill $first $second");
  EXPECT_EQ(result.status, 0) << result.errors;
  std::istringstream words(result.output);
  std::vector<unsigned long> samples;
  for (unsigned long sample = 0; words >> sample;) {
    samples.push_back(sample);
  }
  EXPECT_EQ(samples.size(), 5U) << result.output;
  return samples;
}

/// How many resets that the guest asked for the VMM has told of.
size_t guest_resets(const std::string& log) {
  size_t count = 0;
  for (size_t place = 0; (place = log.find("(SYSTEM_RESET", place)) != std::string::npos; ++place) {
    ++count;
  }
  return count;
}

/// The guest with everything.
class LinuxGuestTest : public EquippedGuestTest {};

TEST_F(LinuxGuestTest, FourCpusADiskAndANetworkWork) {
  guest().new_kernel_messages();
  EXPECT_EQ(guest().run("nproc").output, std::to_string(kVcpus) + "\n");
  const std::string page_kib = std::to_string(guest_kernel().page_size_bytes / 1024);
  EXPECT_EQ(guest().run("echo $(grep -m 1 KernelPageSize /proc/self/smaps)").output,
            "KernelPageSize: " + page_kib + " kB\n");
  // What the guest wrote is what it reads back, and what the host has in the file.
  const CommandResult written = guest().run(
      "dd if=/dev/urandom of=/tmp/data bs=1M count=8 2>/dev/null; sha256sum < /tmp/data;"
      "dd if=/tmp/data of=/dev/vda bs=1M oflag=direct 2>/dev/null; sync; echo 3 > /proc/sys/vm/drop_caches; rm "
      "/tmp/data");
  EXPECT_EQ(written.status, 0) << written.errors;
  ASSERT_GE(written.output.size(), 64U) << written.output;
  EXPECT_EQ(guest().run("dd if=/dev/vda bs=1M count=8 iflag=direct 2>/dev/null | sha256sum").output, written.output);
  EXPECT_EQ(run_on_host({"sh", "-c", std::string("dd if=") + kDisk + " bs=1M count=8 2>/dev/null | sha256sum"}).output,
            written.output);
  const CommandResult ping = guest().run(
      std::string("ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up; ping -c 3 -s 1400 ") + kHostAddress);
  EXPECT_EQ(ping.status, 0) << ping.output << ping.errors;
  EXPECT_EQ(guest().run("dd if=/dev/hwrng bs=64 count=1 2>/dev/null | wc -c").output, "64\n");
  expect_healthy(guest().new_kernel_messages());
}

TEST_F(LinuxGuestTest, AWriteToAReadOnlyDiskIsAnErrorInTheGuestAndNoMore) {
  const CommandResult write =
      guest().run("blockdev --setrw /dev/vdb; dd if=/dev/urandom of=/dev/vdb bs=4k count=1 oflag=direct");
  EXPECT_NE(write.status, 0);
  EXPECT_EQ(guest().run("dd if=/dev/vdb bs=4k count=1 iflag=direct 2>/dev/null | wc -c").output, "4096\n");
  const CommandResult on_host = run_on_host({"sh", "-c", std::string("tr -d '\\0' < ") + kReadOnlyDisk + " | wc -c"});
  EXPECT_EQ(on_host.output, "0\n");
}

TEST(GuestConsoleTest, WhatNoHealthyGuestPrintsIsFound) {
  EXPECT_EQ(complaint_in("Linux version 6.12\nRun /init as init process\n"), "");
  for (const char* const line :
       {"watchdog: BUG: soft lockup - CPU#1 stuck for 123s! [dd:77]",
        "watchdog: Watchdog detected hard LOCKUP on cpu 0", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "rcu: INFO: rcu_sched self-detected stall on CPU", "INFO: task dd:77 blocked for more than 600 seconds.",
        "BUG: workqueue lockup - pool cpus=0 node=0 stuck for 301s!", "Internal error: Oops: 0000000096000004 [#1] SMP",
        "Kernel panic - not syncing: Fatal exception"}) {
    EXPECT_NE(complaint_in(line), "") << line;
  }
}

TEST_F(LinuxGuestTest, ItsKernelLooksForWhatIsStuck) {
  EXPECT_EQ(guest()
                .run("cd /proc/sys/kernel; cat soft_watchdog watchdog_thresh hung_task_timeout_secs;"
                     "cd /sys/module/rcupdate/parameters; cat rcu_cpu_stall_suppress rcu_cpu_stall_timeout")
                .output,
            "1\n60\n600\n0\n300\n");
}

TEST_F(LinuxGuestTest, TheBalloonAndTheSecondConsoleHaveTheirDrivers) {
  EXPECT_EQ(guest().run("ls /sys/bus/virtio/drivers/virtio_balloon | grep -c virtio").output, "1\n");
  EXPECT_EQ(guest().run("ls /sys/class/tty/hvc0 > /dev/null && echo text > /dev/hvc0").status, 0);
  EXPECT_EQ(run_on_host({"grep", "-q", "text", kSecondConsole}).status, 0);
}

TEST_F(LinuxGuestTest, HasTheNodeOfPvVcpuStateWhichItDoesNotKnow) {
  EXPECT_NE(device_tree_nodes(guest()).find(kPvVcpuStateNode), std::string::npos);
}

TEST_F(LinuxGuestTest, StealTimeGrowsUnderContention) {
  const auto samples = steal_samples(guest());
  ASSERT_FALSE(samples.empty());
  EXPECT_TRUE(std::ranges::is_sorted(samples));
  EXPECT_GT(samples.back(), samples.front());
}

TEST_F(LinuxGuestTest, RebootStartsAgainInPlace) {
  constexpr ChildProcess::Seconds kShortly{1};
  const auto boot_id = [] { return guest().run("cat /proc/sys/kernel/random/boot_id").output; };
  const std::string before = boot_id();
  const auto resets = guest_resets(guest().vmm().errors());
  EXPECT_EQ(guest().run("printf done | dd of=/dev/vda conv=notrunc 2>/dev/null; sync").status, 0);
  EXPECT_EQ(guest().agent({"reboot"}).status, 0);
  std::string after;
  do {
    ASSERT_TRUE(guest().wait_for_agent());
    after = boot_id();
  } while (after == before || after.empty());
  EXPECT_EQ(after.size(), before.size());
  EXPECT_EQ(guest().run("nproc").output, std::to_string(kVcpus) + "\n");
  EXPECT_EQ(guest().run("head -c 4 /dev/vda").output, "done");
  EXPECT_FALSE(guest().vmm().wait(kShortly)) << "the machine has ended";  // reads what the VMM has said
  EXPECT_EQ(guest_resets(guest().vmm().errors()), resets + 1) << guest().vmm().errors();
  expect_healthy(guest().new_kernel_messages());
}

/// The guest without what the host offers for the sake of its scheduler, and with as many vCPUs as any host can have.
class PlainLinuxGuestTest : public SharedGuestTest {
 protected:
  static constexpr const char* kName = "plain";
  static void SetUpTestSuite() {
    boot({.vcpu_count = 8, .memory = "512M", .options = {"--name", kName, "--no-pv-time", "--pv-vcpu-state", "off"}});
  }
};

TEST_F(PlainLinuxGuestTest, EightCpusComeOnline) { EXPECT_EQ(guest().run("nproc").output, "8\n"); }

TEST_F(PlainLinuxGuestTest, HasNoNodeOfPvVcpuState) {
  const std::string nodes = device_tree_nodes(guest());
  EXPECT_NE(nodes.find("cpus\n"), std::string::npos) << nodes;
  EXPECT_EQ(nodes.find(kPvVcpuStateNode), std::string::npos) << nodes;
}

TEST_F(PlainLinuxGuestTest, WithoutPvTimeThereIsNoStealTime) {
  EXPECT_EQ(std::ranges::count(steal_samples(guest()), 0U), 5);
}

// The last one: the guest is gone afterwards.
TEST_F(PlainLinuxGuestTest, StopPowersItOff) {
  const CommandResult stop = run_on_host({"tandem", "stop", kName, "--timeout", std::to_string(kHangLimit.count())});
  EXPECT_EQ(stop.status, 0) << stop.output << stop.errors;
  EXPECT_EQ(stop.errors, "");
  EXPECT_EQ(guest().vmm().wait(kHangLimit), 0) << guest().vmm().errors();
  EXPECT_FALSE(std::filesystem::exists(guest().vsock()));
}

}  // namespace
}  // namespace tandem::tests
