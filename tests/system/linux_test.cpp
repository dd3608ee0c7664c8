// SPDX-License-Identifier: Apache-2.0
// Boots Linux under `tandem run`, in the testbed, and holds it to what it prints.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/system/guest_fixture.hpp"

namespace tandem::tests {
namespace {

/// Runs a command of the host that prepares a test.
void prepare(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

/// One boot of Linux: what it is to do, and with how much.
struct LinuxBoot {
  std::string commands;  ///< For sh in the guest; no double quotes. Their output begins a line.
  unsigned vcpu_count = 1;
  std::string memory = "256M";
  std::string parameters = {};               ///< More words of the kernel command line.
  std::vector<std::string> options = {};     ///< More options of `tandem run`.
  ChildProcess::Seconds limit = kHangLimit;  ///< A guest that takes longer hangs.
};

std::vector<std::string> run_command(const LinuxBoot& boot) {
  std::vector<std::string> command{
      "tandem",    "run",
      "--kernel",  variable("TANDEM_GUEST_KERNEL"),
      "--initrd",  variable("TANDEM_GUEST_INITRAMFS"),
      "--cpus",    std::to_string(boot.vcpu_count),
      "--memory",  boot.memory,
      "--cmdline", kKernelParameters + boot.parameters + " tandem.exec=\"echo; " + boot.commands + "\""};
  command.insert(command.end(), boot.options.begin(), boot.options.end());
  return command;
}

/// Boots, waits for the guest to power itself off, and returns its console.
std::string console_of(const LinuxBoot& boot) {
  ChildProcess tandem(run_command(boot));
  tandem.close_input();
  const std::optional<int> status = tandem.wait(boot.limit);
  EXPECT_EQ(status, 0) << "console:\n" << tandem.output() << "\nstderr:\n" << tandem.errors();
  EXPECT_NE(tandem.output().find("tandem.exec: exit status 0"), std::string::npos) << tandem.output();
  expect_healthy(tandem.output());
  return tandem.output();
}

size_t occurrences(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) {
    ++count;
  }
  return count;
}

class LinuxTest : public testing::Test {
 protected:
  void SetUp() override {
    prepare("rm -f /tmp/disk.img && dd if=/dev/zero of=/tmp/disk.img bs=1M count=32 2>/dev/null");
  }
  void TearDown() override { prepare("rm -f /tmp/disk.img"); }
};

TEST_F(LinuxTest, FourCpusADiskAndANetworkWork) {
  prepare("tunctl -t tap0 >/dev/null && ip addr add 192.0.2.1/24 dev tap0 && ip link set tap0 up");
  const std::string console = console_of(
      {.commands =
           "echo CPUS $(nproc); echo PAGE $(grep -m 1 KernelPageSize /proc/self/smaps);"
           "dd if=/dev/urandom of=/tmp/data bs=1M count=8 2>/dev/null;"
           "echo SUM $(sha256sum < /tmp/data);"
           "dd if=/tmp/data of=/dev/vda bs=1M oflag=direct 2>/dev/null; sync; echo 3 > /proc/sys/vm/drop_caches;"
           "echo SUM $(dd if=/dev/vda bs=1M count=8 iflag=direct 2>/dev/null | sha256sum);"
           "ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up;"
           "ping -c 3 -s 1400 192.0.2.1 > /tmp/ping && echo PING works;"
           "dd if=/dev/hwrng bs=64 count=1 2>/dev/null | wc -c | sed s/^/RNG/",
       .vcpu_count = 4,
       .memory = "512M",
       .parameters = "loglevel=7",
       .options = {"--disk", "/tmp/disk.img", "--net", "tap=tap0"}});
  prepare("tunctl -d tap0 >/dev/null");
  EXPECT_NE(console.find("\nCPUS 4\r"), std::string::npos) << console;
  const std::string page_kib = std::to_string(guest_kernel().page_size_bytes / 1024);
  EXPECT_NE(console.find("\nPAGE KernelPageSize: " + page_kib + " kB"), std::string::npos) << console;
  EXPECT_NE(console.find("\nPING works"), std::string::npos) << console;
  EXPECT_NE(console.find("RNG64"), std::string::npos) << console;
  // What the guest wrote is what it read back, and what the host has in the file.
  const std::string label = "\nSUM ";
  const size_t first = console.find(label);
  ASSERT_NE(first, std::string::npos);
  const std::string sum = console.substr(first + label.size(), 64);
  EXPECT_EQ(occurrences(console, label + sum), 2U) << console;
  prepare("dd if=/tmp/disk.img bs=1M count=8 2>/dev/null | sha256sum | grep -q " + sum);
}

/// How many CPUs a guest with `vcpu_count` vCPUs says are online.
unsigned long online_cpus(unsigned vcpu_count, ChildProcess::Seconds limit = kHangLimit) {
  const std::string label = "\nCPUS ";
  const std::string console =
      console_of({.commands = "echo CPUS $(nproc)", .vcpu_count = vcpu_count, .memory = "512M", .limit = limit});
  const size_t place = console.find(label);
  return place == std::string::npos ? 0 : std::strtoul(console.c_str() + place + label.size(), nullptr, 10);
}

TEST_F(LinuxTest, OneCpuComesOnline) { EXPECT_EQ(online_cpus(1), 1U); }

TEST_F(LinuxTest, EightCpusComeOnline) { EXPECT_EQ(online_cpus(8), 8U); }

TEST_F(LinuxTest, SeventeenCpusComeOnline) {
  if (capabilities().gic_version < 3) {
    GTEST_SKIP() << "needs a GICv3, which this is without: " << capabilities().where;
  }
  EXPECT_EQ(online_cpus(17), 17U);
}

/// What takes minutes: two emulated CPUs run many vCPUs in turn, and until the guest's kernel has set up its clock
/// source each of these takes every tick, idle or not.
constexpr ChildProcess::Seconds kSoakLimit{3000};

TEST(SoakLinuxTest, ThirtyThreeCpusComeOnline) { EXPECT_EQ(online_cpus(33, kSoakLimit), 33U); }

TEST(SoakLinuxTest, SixtyFourCpusComeOnline) { EXPECT_EQ(online_cpus(64, kSoakLimit), 64U); }

TEST_F(LinuxTest, RebootStartsAgainInPlace) {
  const LinuxBoot boot{.commands =
                           "if [ $(head -c 4 /dev/vda) = done ]; then echo SECOND boot; else"
                           " printf done | dd of=/dev/vda conv=notrunc 2>/dev/null; sync; echo FIRST boot;"
                           " reboot -f; sleep 100; fi",
                       .options = {"--disk", "/tmp/disk.img"}};
  ChildProcess tandem(run_command(boot));
  tandem.close_input();
  EXPECT_EQ(tandem.wait(kHangLimit), 0) << tandem.output() << tandem.errors();
  EXPECT_EQ(occurrences(tandem.output(), "\nFIRST boot"), 1U) << tandem.output();
  EXPECT_EQ(occurrences(tandem.output(), "\nSECOND boot"), 1U) << tandem.output();
  EXPECT_NE(tandem.errors().find("guest reset 1 (SYSTEM_RESET"), std::string::npos) << tandem.errors();
  expect_healthy(tandem.output());
}

TEST_F(LinuxTest, APanicEndsWithStatusThreeAndOneLine) {
  if (!guest_kernel().pvpanic) {
    GTEST_SKIP() << "needs a guest kernel with PVPANIC_MMIO, which this is without: " << guest_kernel().name;
  }
  ChildProcess tandem(run_command({.commands = "echo c > /proc/sysrq-trigger", .options = {"--log-level", "warn"}}));
  tandem.close_input();
  EXPECT_EQ(tandem.wait(kHangLimit), 3) << tandem.output();
  EXPECT_EQ(tandem.errors(), "tandem: run: the guest's kernel panicked\n");
}

TEST_F(LinuxTest, AGuestThatDoesNotKnowPvVcpuStateBootsWithItsNodeAndWithout) {
  const std::string commands = "ls /proc/device-tree | sed s/^/NODE\\ /";
  const std::string node = "\nNODE pv-vcpu-state@b000000";
  EXPECT_NE(console_of({.commands = commands}).find(node), std::string::npos);
  EXPECT_EQ(console_of({.commands = commands, .options = {"--pv-vcpu-state", "off"}}).find(node), std::string::npos);
}

/// Restricts this process, and what it starts, to one CPU, as long as it lives.
class OneCpu {
 public:
  OneCpu() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    EXPECT_EQ(::sched_setaffinity(0, sizeof first, &first), 0);
  }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;
  ~OneCpu() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

/// What two busy vCPUs on one CPU see of /proc/stat's steal column, sampled some seconds apart.
std::vector<unsigned long> steal_samples(const std::vector<std::string>& options) {
  const OneCpu one_cpu;
  const std::string console = console_of(
      {.commands = "while :; do :; done & while :; do :; done & for i in 1 2 3 4 5; do sleep 2;"
                   " while read w a b c d e f g steal rest; do [ $w = cpu ] && echo STEAL $steal; done < /proc/stat;"
                   " done; true",
       .vcpu_count = 2,
       .options = options});
  const std::string label = "\nSTEAL ";
  std::vector<unsigned long> samples;
  for (size_t at = console.find(label); at != std::string::npos; at = console.find(label, at + 1)) {
    samples.push_back(std::strtoul(console.c_str() + at + label.size(), nullptr, 10));
  }
  EXPECT_EQ(samples.size(), 5U) << console;
  return samples;
}

TEST_F(LinuxTest, StealTimeGrowsUnderContention) {
  const auto samples = steal_samples({});
  EXPECT_TRUE(std::ranges::is_sorted(samples));
  EXPECT_GT(samples.back(), samples.front());
}

TEST_F(LinuxTest, WithoutPvTimeThereIsNoStealTime) {
  const auto samples = steal_samples({"--no-pv-time"});
  EXPECT_EQ(std::ranges::count(samples, 0U), 5);
}

TEST_F(LinuxTest, AWriteToAReadOnlyDiskIsAnErrorInTheGuestAndNoMore) {
  const std::string console =
      console_of({.commands = "blockdev --setrw /dev/vda;"
                              "dd if=/dev/urandom of=/dev/vda bs=4k count=1 oflag=direct || echo REFUSED;"
                              "dd if=/dev/vda bs=4k count=1 iflag=direct 2>/dev/null | wc -c",
                  .options = {"--disk", "/tmp/disk.img,ro"}});
  EXPECT_NE(console.find("\nREFUSED"), std::string::npos) << console;
  prepare("[ \"$(tr -d '\\0' < /tmp/disk.img | wc -c)\" = 0 ]");
}

TEST_F(LinuxTest, TheBalloonAndTheSecondConsoleHaveTheirDrivers) {
  const std::string console =
      console_of({.commands = "ls /sys/bus/virtio/drivers/virtio_balloon | grep -c virtio | sed s/^/BALLOON/;"
                              "ls /sys/class/tty/hvc0 > /dev/null && echo HVC works; echo text > /dev/hvc0",
                  .options = {"--balloon", "--hvc", "file=/tmp/hvc.log"}});
  EXPECT_NE(console.find("BALLOON1"), std::string::npos) << console;
  EXPECT_NE(console.find("\nHVC works"), std::string::npos) << console;
  prepare("grep -q text /tmp/hvc.log");
}

TEST_F(LinuxTest, TheVmmItselfNeedsLittleMemory) {
  const unsigned memory_mib = guest_kernel().least_memory_mib;
  ChildProcess tandem(run_command({.commands = "echo UP; sleep 1000", .memory = std::to_string(memory_mib) + "M"}));
  ASSERT_TRUE(tandem.wait_for("\nUP", 0, kHangLimit)) << tandem.output() << tandem.errors();
  // All that is private and anonymous, but for the one mapping that is the guest's RAM.
  std::ifstream maps("/proc/" + std::to_string(tandem.pid()) + "/smaps");
  size_t anonymous_kib = 0;
  size_t file_kib = 0;
  bool is_ram = false;
  size_t rss = 0;
  for (std::string line; std::getline(maps, line);) {
    const auto number = [&] { return std::strtoul(line.c_str() + line.find(':') + 1, nullptr, 10); };
    if (line.starts_with("Size:")) {
      is_ram = number() == memory_mib * 1024;
    } else if (line.starts_with("Rss:")) {
      rss = number();
    } else if (line.starts_with("Anonymous:") && !is_ram) {
      anonymous_kib += number();
      file_kib += rss - number();
    }
  }
  RecordProperty("anonymous_kib", std::to_string(anonymous_kib));
  RecordProperty("file_kib", std::to_string(file_kib));
  EXPECT_LE(anonymous_kib, 1024U);
  EXPECT_LE(anonymous_kib + file_kib, 4096U);
}

}  // namespace
}  // namespace tandem::tests
