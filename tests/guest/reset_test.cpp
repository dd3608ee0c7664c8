// SPDX-License-Identifier: Apache-2.0
// In-place reset: the process stays, every boot looks like the first, and nothing is used up.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"

namespace tandem::tests {
namespace {

/// What a process holds of the host.
struct Holdings {
  size_t descriptors = 0;
  size_t threads = 0;
  size_t rss_kib = 0;
};

size_t entries_of(const std::string& directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) {
    ++count;
  }
  return count;
}

Holdings holdings_of(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  Holdings holdings{.descriptors = entries_of(process + "/fd"), .threads = entries_of(process + "/task")};
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      holdings.rss_kib = std::strtoul(line.c_str() + 6, nullptr, 10);
    }
  }
  return holdings;
}

/// Drives the payload `reset`, which waits for one character at each boot.
class ResetTest : public testing::Test {
 protected:
  /// @return false if the payload does not come up.
  bool boot() {
    const auto place = tandem_->wait_for("READY", seen_);
    seen_ = place.value_or(seen_);
    return place.has_value();
  }

  void reset(char how) { tandem_->send(std::string(1, how)); }

  void expect_power_off() {
    reset('q');
    EXPECT_EQ(tandem_->wait(), 0) << transcript();
    const GuestReport report = parse_report(tandem_->output());
    EXPECT_EQ(report.exit, 0) << transcript();
    EXPECT_TRUE(report.failures.empty()) << transcript();
  }

  std::string transcript() { return "console:\n" + tandem_->output() + "\nstderr:\n" + tandem_->errors(); }

  void start(const std::string& cmdline = "") {
    tandem_.emplace(run_command({.payload = "reset", .cmdline = cmdline, .vcpu_count = 3}));
  }

  std::optional<ChildProcess> tandem_;
  size_t seen_ = 0;
};

TEST_F(ResetTest, EveryBootLooksLikeTheFirst) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  for (const char how : {'r', '2', 'r', '2'}) {
    reset(how);
    ASSERT_TRUE(boot()) << "after " << how << "\n" << transcript();
  }
  expect_power_off();
  const std::vector<std::string> states = values_of("STATE", tandem_->output());
  ASSERT_EQ(states.size(), 5U);
  for (const std::string& state : states) {
    EXPECT_EQ(state, states.front());
  }
}

TEST_F(ResetTest, EveryBootGetsSeedsOfItsOwn) {
  constexpr unsigned kBoots = 4;
  start();
  ASSERT_TRUE(boot()) << transcript();
  for (unsigned count = 1; count < kBoots; ++count) {
    reset('r');
    ASSERT_TRUE(boot()) << transcript();
  }
  expect_power_off();
  const std::vector<std::string> seeds = values_of("SEED", tandem_->output());
  EXPECT_EQ(seeds.size(), kBoots);
  EXPECT_EQ(std::set<std::string>(seeds.begin(), seeds.end()).size(), kBoots);
}

TEST_F(ResetTest, AVendorResetIsAResetAndIsReportedWithTypeAndCookie) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  reset('v');
  ASSERT_TRUE(boot()) << transcript();
  expect_power_off();
  EXPECT_NE(tandem_->errors().find("0x80000000"), std::string::npos) << tandem_->errors();
  EXPECT_NE(tandem_->errors().find("0x5678"), std::string::npos) << tandem_->errors();
}

TEST_F(ResetTest, AnAbortThatTheBootCpuHasNotTakenYetIsForgotten) {
  constexpr unsigned kResets = 20;  // each has a fair chance to fall between an abort and the next entry
  start("quiet=1");
  ASSERT_TRUE(boot()) << transcript();
  for (unsigned count = 1; count <= kResets; ++count) {
    reset('a');
    ASSERT_TRUE(boot()) << "reset " << count << "\n" << transcript();
  }
  expect_power_off();
}

TEST_F(ResetTest, FiftyResetsUseNothingUp) {
  constexpr unsigned kResets = 50;
  constexpr unsigned kSettled = 5;
  constexpr size_t kAllowedKib = 256;
  start("quiet=1");
  ASSERT_TRUE(boot()) << transcript();
  Holdings settled;
  for (unsigned count = 1; count <= kResets; ++count) {
    reset('r');
    ASSERT_TRUE(boot()) << "reset " << count << "\n" << transcript();
    const Holdings holdings = holdings_of(tandem_->pid());
    if (count <= kSettled) {
      settled = holdings;
      continue;
    }
    ASSERT_EQ(holdings.descriptors, settled.descriptors) << "reset " << count;
    ASSERT_EQ(holdings.threads, settled.threads) << "reset " << count;
    ASSERT_LE(holdings.rss_kib, settled.rss_kib + kAllowedKib) << "reset " << count;
  }
  expect_power_off();
}

}  // namespace
}  // namespace tandem::tests
