// SPDX-License-Identifier: Apache-2.0
// What `tandem run` answers when the host or the user's files are not what they should be: one line, a status, and
// nothing left behind. What the command line alone shows to be wrong is tested natively, in tests/unit/vmm/cli.
#include <gtest/gtest.h>
#include <termios.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"

namespace tandem::tests {
namespace {

void prepare(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

/// A run that fails: how to make its input, what to add to `tandem run`, and what the line says.
struct RefusalCase {
  std::string name;
  std::string preparation;
  std::vector<std::string> options;
  std::string said;
  int status = 1;
  std::string circumstances = {};  ///< What a shell does before it becomes the program.
};

std::ostream& operator<<(std::ostream& out, const RefusalCase& row) { return out << row.name; }

std::vector<RefusalCase> kernel_cases() {
  return {
      {.name = "MissingKernel", .preparation = "true", .options = {"--kernel", "/tmp/none"}, .said = "No such file"},
      {.name = "DirectoryAsKernel", .preparation = "true", .options = {"--kernel", "/tmp"}, .said = "kernel /tmp"},
      {.name = "FifoAsKernel",
       .preparation = "mkfifo /tmp/in",
       .options = {"--kernel", "/tmp/in"},
       .said = "kernel /tmp/in"},
      {.name = "EmptyKernel", .preparation = ": > /tmp/in", .options = {"--kernel", "/tmp/in"}, .said = "empty"},
      {.name = "ElfAsKernel",
       .preparation = "cp $(which tandem) /tmp/in",
       .options = {"--kernel", "/tmp/in"},
       .said = "ELF"},
      {.name = "ImageWithoutMagic",
       .preparation = "cp " + payload_image("hello") +
                      " /tmp/in && dd if=/dev/zero of=/tmp/in bs=1 seek=56 count=4 "
                      "conv=notrunc 2>/dev/null",
       .options = {"--kernel", "/tmp/in"},
       .said = "no arm64 Image header"},
      {.name = "InitrdLargerThanMemory",
       .preparation = "dd if=/dev/zero of=/tmp/in bs=1M count=40 2>/dev/null",
       .options = {"--kernel", payload_image("hello"), "--initrd", "/tmp/in", "--memory", "32M"},
       .said = "/tmp/in"},
  };
}

std::vector<RefusalCase> resource_cases() {
  const std::string hello = payload_image("hello");
  return {
      {.name = "EmptyDisk",
       .preparation = ": > /tmp/in",
       .options = {"--kernel", hello, "--disk", "/tmp/in"},
       .said = "/tmp/in"},
      {.name = "DiskOf513Bytes",
       .preparation = "head -c 513 /dev/zero > /tmp/in",
       .options = {"--kernel", hello, "--disk", "/tmp/in"},
       .said = "513"},
      {.name = "TheSameDiskTwice",
       .preparation = "head -c 1048576 /dev/zero > /tmp/in",
       .options = {"--kernel", hello, "--disk", "/tmp/in", "--disk", "/tmp/in"},
       .said = "/tmp/in"},
      {.name = "MissingDisk",
       .preparation = "true",
       .options = {"--kernel", hello, "--disk", "/tmp/none"},
       .said = "No such file"},
      {.name = "MissingTap",
       .preparation = "true",
       .options = {"--kernel", hello, "--net", "tap=none0"},
       .said = "none0"},
      {.name = "ImageBeyondTheFileSizeLimit",
       .preparation = "true",
       .options = {"--kernel", hello},
       .said = "File too large",
       .circumstances = "ulimit -f 1"},
      {.name = "TreeThatCannotBeWritten",
       .preparation = "true",
       .options = {"--kernel", hello, "--dump-dtb", "/dev/full"},
       .said = "--dump-dtb: /dev/full: No space left on device"},
      {.name = "NoKvm",
       .preparation = "mv /dev/kvm /dev/kvm.away",
       .options = {"--kernel", hello},
       .said = "/dev/kvm: No such file or directory"},
  };
}

/// GIC versions that this host's KVM does not have.
std::vector<RefusalCase> gic_cases() {
  const bool has_v3 = capabilities().gic_version == 3;
  return {{.name = "TheOtherGic",
           .preparation = "true",
           .options = {"--kernel", payload_image("hello"), "--gic", has_v3 ? "v2" : "v3"},
           .said = has_v3 ? "offers GICv3" : "offers GICv2"}};
}

std::string name_of(const testing::TestParamInfo<RefusalCase>& info) { return info.param.name; }

class RefusalTest : public testing::TestWithParam<RefusalCase> {
 protected:
  void TearDown() override { prepare("rm -f /tmp/in; [ ! -e /dev/kvm.away ] || mv /dev/kvm.away /dev/kvm"); }
};

TEST_P(RefusalTest, IsOneLineAndAStatus) {
  const RefusalCase& row = GetParam();
  prepare(row.preparation);
  std::vector<std::string> command{"sh", "-c", (row.circumstances.empty() ? ":" : row.circumstances) + "; exec \"$@\""};
  command.insert(command.end(), {"sh", "tandem", "run"});
  command.insert(command.end(), row.options.begin(), row.options.end());
  ChildProcess tandem(command);
  tandem.close_input();
  EXPECT_EQ(tandem.wait(), row.status) << tandem.errors();
  EXPECT_TRUE(tandem.errors().starts_with("tandem: run: ")) << tandem.errors();
  EXPECT_NE(tandem.errors().find(row.said), std::string::npos) << tandem.errors();
  EXPECT_EQ(std::ranges::count(tandem.errors(), '\n'), 1) << tandem.errors();
  EXPECT_EQ(tandem.output(), "");
}

INSTANTIATE_TEST_SUITE_P(Kernel, RefusalTest, testing::ValuesIn(kernel_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Resource, RefusalTest, testing::ValuesIn(resource_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Gic, RefusalTest, testing::ValuesIn(gic_cases()), name_of);

TEST(LimitTest, TheSoftLimitOnDescriptorsDoesNotBoundTheMachine) {
  ChildProcess tandem(
      {"sh", "-c", "ulimit -Sn 12; exec tandem run --dry-run --cpus 8 --kernel \"$1\"", "sh", payload_image("hello")});
  EXPECT_EQ(tandem.wait(), 0) << tandem.errors();
}

TEST(TextTest, HelpThatCannotBeWrittenIsAFailure) {
  ChildProcess tandem({"sh", "-c", "exec tandem --help >/dev/full"});
  EXPECT_EQ(tandem.wait(), 1);
  EXPECT_EQ(tandem.errors(), "tandem: standard output: No space left on device\n");
}

TEST(KernelPageSizeTest, AKernelFor16KiBPagesStartsOnlyWhereTheCpuHasThem) {
  if (!capabilities().pages_16k) {
    GTEST_SKIP() << "needs to know whether the CPU has 16 KiB pages, which no program sees on " << capabilities().where;
  }
  // A payload that says so in its header's flags, at offset 24.
  prepare("cp " + payload_image("hello") +
          " /tmp/in && printf '\\004' | dd of=/tmp/in bs=1 seek=24 conv=notrunc 2>/dev/null");
  ChildProcess tandem({"tandem", "run", "--kernel", "/tmp/in", "--log-level", "warn"});
  tandem.close_input();
  const bool has_them = *capabilities().pages_16k;
  EXPECT_EQ(tandem.wait(), has_them ? 0 : 1) << tandem.errors();
  EXPECT_EQ(tandem.errors(), has_them ? ""
                                      : "tandem: run: kernel /tmp/in: it was built for pages of 16 KiB, which this "
                                        "host's CPU does not have\n");
  prepare("rm /tmp/in");
}

/// The terminal's settings, as far as raw mode changes them.
tcflag_t local_modes(const ChildProcess& tandem) {
  termios settings{};
  EXPECT_EQ(::tcgetattr(tandem.terminal(), &settings), 0);
  return settings.c_lflag & (ECHO | ICANON | ISIG);
}

TEST(TerminalTest, IsGivenBackAfterAFailedStart) {
  ChildProcess tandem({"tandem", "run", "--kernel", "/tmp/none"}, ChildProcess::Streams::kTerminal);
  EXPECT_EQ(tandem.wait(), 1);
  EXPECT_EQ(local_modes(tandem), static_cast<tcflag_t>(ECHO | ICANON | ISIG));
}

class TerminalSignalTest : public testing::TestWithParam<int> {};

TEST_P(TerminalSignalTest, GivesTheTerminalBack) {
  const PayloadBoot boot{.payload = "uart_input", .cmdline = "count=1000"};
  ChildProcess tandem(run_command(boot), ChildProcess::Streams::kTerminal);
  ASSERT_TRUE(tandem.wait_for("READY")) << tandem.output();
  EXPECT_EQ(local_modes(tandem), 0U);
  tandem.signal(GetParam());
  EXPECT_EQ(tandem.wait(), 1) << tandem.output();
  EXPECT_EQ(local_modes(tandem), static_cast<tcflag_t>(ECHO | ICANON | ISIG));
}

INSTANTIATE_TEST_SUITE_P(Signals, TerminalSignalTest, testing::Values(SIGTERM, SIGINT, SIGHUP));

TEST(SignalTest, AHangUpThatWasIgnoredFromTheStartDoesNotEndTheMachine) {
  std::vector<std::string> command{"sh", "-c", "trap '' HUP; exec \"$@\"", "sh"};
  const std::vector<std::string> run = run_command({.payload = "uart_input", .cmdline = "count=1000"});
  command.insert(command.end(), run.begin(), run.end());
  ChildProcess tandem(command);
  ASSERT_TRUE(tandem.wait_for("READY")) << tandem.errors();
  tandem.signal(SIGHUP);
  tandem.signal(SIGTERM);
  EXPECT_EQ(tandem.wait(), 1);
  EXPECT_NE(tandem.errors().find("ended by SIGTERM"), std::string::npos) << tandem.errors();
}

TEST(TerminalTest, TheEscapeKeyEndsTheMachine) {
  ChildProcess tandem(run_command({.payload = "uart_input", .cmdline = "count=1000"}),
                      ChildProcess::Streams::kTerminal);
  ASSERT_TRUE(tandem.wait_for("READY")) << tandem.output();
  tandem.send("\x01x");
  EXPECT_EQ(tandem.wait(), 1) << tandem.output();
  EXPECT_NE(tandem.output().find("escape key"), std::string::npos) << tandem.output();
}

}  // namespace
}  // namespace tandem::tests
