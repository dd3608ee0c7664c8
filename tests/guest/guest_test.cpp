// SPDX-License-Identifier: Apache-2.0
// Boots the payloads of this folder under `tandem run`, in the testbed, and holds them to what they report.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"

namespace tandem::tests {
namespace {

/// A table row: a boot, and what the machine needs for it.
struct GuestCase {
  std::string name;
  PayloadBoot boot = {};
  std::string needs = {};  ///< For the skip message; empty: every machine can.
  bool available = true;
};

std::ostream& operator<<(std::ostream& out, const GuestCase& row) { return out << row.name; }

std::string flag(const char* name, bool value) { return std::string(name) + "=" + (value ? "1" : "0"); }

std::string expected_features(bool sve, bool pauth, bool pmu) {
  return flag("sve", sve) + " " + flag("pauth", pauth) + " " + flag("pmu", pmu);
}

std::string expected_tree(unsigned vcpu_count, unsigned memory_mib) {
  return "cpus=" + std::to_string(vcpu_count) + " memory=" + std::to_string(uint64_t{memory_mib} << 20) +
         " gic=" + std::to_string(capabilities().gic_version);
}

std::vector<GuestCase> boot_cases() {
  return {
      {.name = "Hello", .boot = {.payload = "hello"}},
      {.name = "HelloInTheLeastMemory", .boot = {.payload = "hello", .memory_mib = 32}},
      {.name = "PsciOneCpu", .boot = {.payload = "psci"}},
      {.name = "PsciPowerOffByTheBootCpu", .boot = {.payload = "psci", .vcpu_count = 4}},
      {.name = "PsciPowerOffByAnotherCpu", .boot = {.payload = "psci", .cmdline = "off=1", .vcpu_count = 3}},
      {.name = "Timer", .boot = {.payload = "timer", .vcpu_count = 4}},
  };
}

std::vector<GuestCase> gic_cases() {
  const bool is_v3 = capabilities().gic_version == 3;
  return {
      {.name = "SgiEightCpus", .boot = {.payload = "sgi", .vcpu_count = 8}},
      {.name = "SgiSeventeenCpus", .boot = {.payload = "sgi", .vcpu_count = 17}, .needs = "GICv3", .available = is_v3},
  };
}

std::vector<GuestCase> soak_cases() {
  const bool is_v3 = capabilities().gic_version == 3;
  std::vector<GuestCase> cases;
  for (const unsigned vcpu_count : {33U, 64U}) {
    const std::string count = std::to_string(vcpu_count);
    cases.push_back({.name = "SgiCpus" + count,
                     .boot = {.payload = "sgi", .vcpu_count = vcpu_count},
                     .needs = "GICv3",
                     .available = is_v3});
    cases.push_back({.name = "TreeCpus" + count,
                     .boot = {.payload = "dtb", .cmdline = expected_tree(vcpu_count, 64), .vcpu_count = vcpu_count},
                     .needs = "GICv3",
                     .available = is_v3});
  }
  return cases;
}

std::vector<GuestCase> tree_cases() {
  const bool is_v3 = capabilities().gic_version == 3;
  return {
      {.name = "TreeOneCpu", .boot = {.payload = "dtb", .cmdline = expected_tree(1, 32), .memory_mib = 32}},
      {.name = "TreeEightCpus", .boot = {.payload = "dtb", .cmdline = expected_tree(8, 64), .vcpu_count = 8}},
      {.name = "TreeSeventeenCpus",
       .boot = {.payload = "dtb", .cmdline = expected_tree(17, 130), .vcpu_count = 17, .memory_mib = 130},
       .needs = "GICv3",
       .available = is_v3},
      {.name = "TreeWithoutIts",
       .boot = {.payload = "dtb", .cmdline = expected_tree(1, 64), .options = {"--no-its"}},
       .needs = "GICv3",
       .available = is_v3},
  };
}

std::vector<GuestCase> feature_cases() {
  const Capabilities& can = capabilities();
  return {
      {.name = "FeaturesOfTheHost",
       .boot = {.payload = "sysregs", .cmdline = expected_features(can.sve, can.pauth, false)}},
      {.name = "FeaturesWithoutSve",
       .boot = {.payload = "sysregs", .cmdline = expected_features(false, can.pauth, false), .options = {"--no-sve"}},
       .needs = "SVE",
       .available = can.sve},
      {.name = "FeaturesWithoutPauth",
       .boot = {.payload = "sysregs", .cmdline = expected_features(can.sve, false, false), .options = {"--no-pauth"}},
       .needs = "PAuth",
       .available = can.pauth},
      {.name = "FeaturesWithPmu",
       .boot = {.payload = "sysregs", .cmdline = expected_features(can.sve, can.pauth, true), .options = {"--pmu"}},
       .needs = "a PMU",
       .available = can.pmu},
  };
}

std::vector<GuestCase> access_cases() {
  return {
      {.name = "AccessesWithoutSyndrome", .boot = {.payload = "mmio_abort", .cmdline = "strict=1"}},
      {.name = "AccessesOfEveryWidth", .boot = {.payload = "mmio_sweep"}},
  };
}

std::vector<GuestCase> pv_cases() {
  std::vector<GuestCase> cases{
      {.name = "CallsWhenOff",
       .boot = {.payload = "pv_calls", .cmdline = "off=1", .vcpu_count = 2, .options = {"--pv-vcpu-state", "off"}}},
      {.name = "RegionWithoutPvTime", .boot = {.payload = "pv_region", .options = {"--no-pv-time"}}},
      {.name = "StolenTimeWhenOff", .boot = {.payload = "pv_time", .cmdline = "off=1", .options = {"--no-pv-time"}}},
  };
  std::vector<std::string> modes = capabilities().vcpu_state_back_ends();
  modes.emplace_back("auto");
  for (const std::string& mode : modes) {
    const std::vector<std::string> options{"--pv-vcpu-state", mode};
    cases.push_back({.name = "CallsOneCpu_" + mode, .boot = {.payload = "pv_calls", .options = options}});
    cases.push_back(
        {.name = "CallsFourCpus_" + mode, .boot = {.payload = "pv_calls", .vcpu_count = 4, .options = options}});
    cases.push_back({.name = "Region_" + mode, .boot = {.payload = "pv_region", .options = options}});
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<GuestCase>& info) { return info.param.name; }

/// Everything that a person needs to see why a case failed.
std::string transcript(const ChildProcess& tandem) {
  return "console:\n" + tandem.output() + "\nstderr:\n" + tandem.errors();
}

/// Boots and holds the payload to its report: something passed, nothing failed, nothing was skipped.
class GuestPayloadTest : public testing::TestWithParam<GuestCase> {};

TEST_P(GuestPayloadTest, ReportsSuccessAndPowersOff) {
  const GuestCase& row = GetParam();
  if (!row.available) {
    GTEST_SKIP() << "needs " << row.needs << ", which this is without: " << capabilities().where;
  }
  ChildProcess tandem(run_command(row.boot));
  const std::optional<int> status = tandem.wait();
  const GuestReport report = parse_report(tandem.output());
  ASSERT_TRUE(status) << "hangs\n" << transcript(tandem);
  EXPECT_EQ(*status, 0) << transcript(tandem);
  EXPECT_EQ(report.exit, 0) << transcript(tandem);
  EXPECT_GT(report.passed, 0U) << transcript(tandem);
  for (const std::string& line : report.failures) {
    ADD_FAILURE() << line;
  }
  for (const std::string& line : report.skips) {
    ADD_FAILURE() << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Boot, GuestPayloadTest, testing::ValuesIn(boot_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Gic, GuestPayloadTest, testing::ValuesIn(gic_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Soak, GuestPayloadTest, testing::ValuesIn(soak_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Tree, GuestPayloadTest, testing::ValuesIn(tree_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Features, GuestPayloadTest, testing::ValuesIn(feature_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Access, GuestPayloadTest, testing::ValuesIn(access_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Pv, GuestPayloadTest, testing::ValuesIn(pv_cases()), name_of);

TEST(TestbedTest, HasKvm) {
  EXPECT_EQ(::access("/dev/kvm", R_OK | W_OK), 0) << "no /dev/kvm on " << capabilities().where;
}

TEST(TestbedTest, HasThePageSizeOfTheTable) {
  EXPECT_EQ(::sysconf(_SC_PAGESIZE), static_cast<long>(capabilities().page_size_bytes)) << capabilities().where;
}

// ---- The console's two directions

std::string random_text(size_t count, unsigned seed) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
  std::string text(count, '\0');
  for (char& letter : text) {
    seed = seed * 1664525U + 1013904223U;
    letter = kLetters[seed >> 26];
  }
  return text;
}

uint32_t sum_of(const std::string& text) {
  uint32_t sum = 0;
  for (const char letter : text) {
    sum = sum * 31 + static_cast<unsigned char>(letter);
  }
  return sum;
}

TEST(ConsoleTest, PastingSixtyFourKibibytesLosesNothing) {
  const std::string pasted = random_text(65536, 1);
  ChildProcess tandem(run_command({.payload = "uart_input", .cmdline = "count=65536"}));
  ASSERT_TRUE(tandem.wait_for("READY")) << transcript(tandem);
  tandem.send(pasted);
  EXPECT_EQ(tandem.wait(ChildProcess::Seconds(300)), 0) << transcript(tandem);
  EXPECT_EQ(parse_report(tandem.output()).exit, 0) << transcript(tandem);
  const std::vector<std::string> expected{"65536 " + std::to_string(sum_of(pasted))};
  EXPECT_EQ(values_of("RECEIVED", tandem.output()), expected);
}

TEST(ConsoleTest, AGuestThatPrintsWhileNobodyReadsIsNotStalled) {
  ChildProcess tandem(run_command({.payload = "flood", .cmdline = "count=32768"}));
  EXPECT_EQ(tandem.wait(ChildProcess::Seconds(300), false), 0) << tandem.errors();
}

TEST(ConsoleTest, AnInputThatEndsIsNoReasonToStop) {
  ChildProcess tandem(run_command({.payload = "timer"}));
  tandem.close_input();
  EXPECT_EQ(tandem.wait(), 0) << transcript(tandem);
  EXPECT_EQ(parse_report(tandem.output()).exit, 0);
}

// ---- A driver that breaks every rule

TEST(VsockNonsenseTest, IsSurvivedAndTold) {
  std::string folder = testing::TempDir() + "vsock-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ChildProcess tandem(run_command({.payload = "vsock_nonsense", .options = {"--vsock", folder + "/vsock"}}));
  EXPECT_EQ(tandem.wait(ChildProcess::Seconds(300)), 0) << transcript(tandem);
  const GuestReport report = parse_report(tandem.output());
  EXPECT_EQ(report.exit, 0) << transcript(tandem);
  EXPECT_GT(report.passed, 0U) << transcript(tandem);
  for (const char* const line : {"the guest sent ", "needs a reset by its driver: descriptor chain with a loop",
                                 "needs a reset by its driver: ring or buffer outside guest RAM"}) {
    EXPECT_NE(tandem.errors().find(line), std::string::npos) << line << " in:\n" << tandem.errors();
  }
  std::filesystem::remove_all(folder);
}

// ---- The end of a guest

TEST(PvpanicTest, APanickedGuestEndsWithStatusThreeAndOneLine) {
  ChildProcess tandem(run_command({.payload = "pvpanic", .options = {"--log-level", "warn"}}));
  EXPECT_EQ(tandem.wait(), 3) << transcript(tandem);
  EXPECT_EQ(parse_report(tandem.output()).exit, 0) << transcript(tandem);
  EXPECT_EQ(std::ranges::count(tandem.errors(), '\n'), 1) << tandem.errors();
}

}  // namespace
}  // namespace tandem::tests
