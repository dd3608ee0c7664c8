// SPDX-License-Identifier: Apache-2.0
// Boots Linux under `tandem run`, in the testbed, and holds it to what it prints.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/system/guest_fixture.hpp"

namespace tandem::tests {
namespace {

/// One boot of Linux: what it is to do, and with how much.
struct LinuxBoot {
  std::string commands;  ///< For sh in the guest; no double quotes. Their output begins a line.
  unsigned vcpu_count = 1;
  std::string memory = "256M";
  std::string parameters = {};               ///< More of the kernel's command line.
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

/// How many CPUs a guest with `vcpu_count` vCPUs says are online.
unsigned long online_cpus(unsigned vcpu_count, ChildProcess::Seconds limit = kHangLimit) {
  const std::string label = "\nCPUS ";
  const std::string console =
      console_of({.commands = "echo CPUS $(nproc)", .vcpu_count = vcpu_count, .memory = "512M", .limit = limit});
  const size_t place = console.find(label);
  return place == std::string::npos ? 0 : std::strtoul(console.c_str() + place + label.size(), nullptr, 10);
}

TEST(LinuxTest, SeventeenCpusComeOnline) {
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

TEST(LinuxTest, APanicEndsWithStatusThreeAndOneLine) {
  if (!guest_kernel().pvpanic) {
    GTEST_SKIP() << "needs a guest kernel with PVPANIC_MMIO, which this is without: " << guest_kernel().name;
  }
  ChildProcess tandem(run_command({.commands = "echo c > /proc/sysrq-trigger", .options = {"--log-level", "warn"}}));
  tandem.close_input();
  EXPECT_EQ(tandem.wait(kHangLimit), 3) << tandem.output();
  EXPECT_EQ(tandem.errors(), "tandem: run: the guest's kernel panicked\n");
}

TEST(LinuxTest, SwitchedOffInTheGuestPvVcpuStateHasNoRecords) {
  if (!guest_kernel().reads_vcpu_state) {
    GTEST_SKIP() << "needs a guest kernel that uses PV vCPU state, which this is without: " << guest_kernel().name;
  }
  const std::string console = console_of({.commands = "mount -t debugfs debugfs /sys/kernel/debug;"
                                                      " [ ! -e /sys/kernel/debug/pv_vcpu_state ] && echo NONE",
                                          .parameters = "pv_vcpu_state=off"});
  EXPECT_NE(console.find("\nNONE"), std::string::npos) << console;
}

TEST(LinuxTest, OneCpuComesOnlineAndTheVmmItselfNeedsLittleMemory) {
  const unsigned memory_mib = guest_kernel().least_memory_mib;
  ChildProcess tandem(
      run_command({.commands = "echo CPUS $(nproc); echo UP; sleep 1000", .memory = std::to_string(memory_mib) + "M"}));
  ASSERT_TRUE(tandem.wait_for("\nUP", 0, kHangLimit)) << tandem.output() << tandem.errors();
  EXPECT_NE(tandem.output().find("\nCPUS 1\r"), std::string::npos) << tandem.output();
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
