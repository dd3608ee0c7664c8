// SPDX-License-Identifier: Apache-2.0
// What a guest sees of PV vCPU state and of stolen time when the host gives its CPUs to somebody else. Nothing here depends
// on time: payloads count polls, and the host counts switches.
#include <gtest/gtest.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"
#include "tests/harness/paged_out_memory.hpp"
#include "tests/harness/uninterruptible_sleeps.hpp"
#include "tests/harness/vmm_threads.hpp"
#include "tests/pv/bpf_objects.hpp"

namespace tandem::tests {
namespace {

/// The word that `tandem run` says at start of what keeps the records.
std::string back_end_named_in(const std::string& errors) {
  constexpr std::string_view kStart = "PV vCPU state: ";
  const size_t found = errors.find(kStart);
  if (found == std::string::npos) {
    return "";
  }
  std::istringstream text(errors.substr(found + kStart.size()));
  std::string name;
  text >> name;
  return name;
}

/// The back ends to test with: those that the host has, or the one of a host that has none.
std::vector<std::string> back_ends() {
  std::vector<std::string> names = capabilities().vcpu_state_back_ends();
  return names.empty() ? std::vector<std::string>{"zeros"} : names;
}

bool knows_preemption(const std::string& back_end) { return back_end != "zeros"; }

std::string reports_argument(const std::string& back_end) {
  return knows_preemption(back_end) ? "reports=1" : "reports=0";
}

/// What the host counts of one vCPU from here on: switches while it wanted to run.
struct HostCount {
  pid_t process;
  pid_t thread;
  UninterruptibleSleeps sleeps;
  uint64_t involuntary_before;

  [[nodiscard]] uint64_t involuntary() const {
    return involuntary_switches(process, thread).value_or(0) - involuntary_before;
  }
  [[nodiscard]] uint64_t uninterruptible() const { return sleeps.count().value_or(0); }
};

/// Begins to count for each vCPU. Fewer of them if the kernel does not let us.
std::vector<HostCount> count_on_host(pid_t process) {
  std::vector<HostCount> counts;
  for (const pid_t thread : vcpu_threads(process)) {
    auto sleeps = UninterruptibleSleeps::of(thread);
    const auto before = involuntary_switches(process, thread);
    if (sleeps && before) {
      counts.push_back({process, thread, *std::move(sleeps), *before});
    }
  }
  return counts;
}

/// Ends the process when a test leaves it behind, though it is no child of ours.
class KillAtEnd {
 public:
  explicit KillAtEnd(pid_t process) : process_(process) {}
  KillAtEnd(const KillAtEnd&) = delete;
  KillAtEnd& operator=(const KillAtEnd&) = delete;
  ~KillAtEnd() { ::kill(process_, SIGKILL); }

 private:
  pid_t process_;
};

/// Boots a payload that waits for one character once it has printed a word.
class PvRunTest : public testing::Test {
 protected:
  void start(const PayloadBoot& boot, const std::vector<std::string>& before = {}) {
    std::vector<std::string> command = before;
    for (std::string& word : run_command(boot)) {
      command.push_back(std::move(word));
    }
    tandem_.emplace(command);
  }

  /// As `start`, by a user who may not load BPF programs.
  void start_without_privilege(const PayloadBoot& boot) {
    std::thread([&] {
      for (const int capability : {CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN}) {
        ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // of this thread, and of what it starts
      }
      start(boot);
    }).join();
  }

  bool reaches(const std::string& word) {
    const auto place = tandem_->wait_for(word + "\n", seen_);
    seen_ = place.value_or(seen_);
    return place.has_value();
  }

  void expect_success() {
    EXPECT_EQ(tandem_->wait(), 0) << transcript();
    const GuestReport report = parse_report(tandem_->output());
    EXPECT_EQ(report.exit, 0) << transcript();
    for (const std::string& line : report.failures) {
      ADD_FAILURE() << line;
    }
  }

  void expect_back_end(const std::string& name) {
    EXPECT_EQ(back_end_named_in(tandem_->errors()), name) << tandem_->errors();
  }

  /// Gives vCPU n the host's CPU `cpus[n]`.
  void pin_vcpus(pid_t process, const std::vector<unsigned>& cpus) {
    const std::vector<pid_t> threads = vcpu_threads(process);
    ASSERT_EQ(threads.size(), cpus.size());
    for (size_t index = 0; index < cpus.size(); ++index) {
      ASSERT_TRUE(pin(threads[index], cpus[index])) << "vCPU " << index;
    }
  }

  std::string transcript() { return "console:\n" + tandem_->output() + "\nstderr:\n" + tandem_->errors(); }

  std::optional<ChildProcess> tandem_;
  size_t seen_ = 0;
};

/// The same with each back end that the host has.
class PvTest : public PvRunTest, public testing::WithParamInterface<std::string> {
 protected:
  void start(PayloadBoot boot, const std::vector<std::string>& before = {}) {
    boot.cmdline += (boot.cmdline.empty() ? "" : " ") + reports_argument(GetParam());
    boot.options = {"--pv-vcpu-state", knows_preemption(GetParam()) ? GetParam() : "auto"};
    PvRunTest::start(boot, before);
  }
};

std::string name_of_back_end(const testing::TestParamInfo<std::string>& info) { return info.param; }

bool has_two_cpus() { return ::sysconf(_SC_NPROCESSORS_ONLN) >= 2; }

TEST_P(PvTest, OnOneHostCpuTheRunningVcpuSeesTheOtherPreempted) {
  start({.payload = "pv_preempt", .cmdline = "shared=1", .vcpu_count = 2});
  ASSERT_TRUE(reaches("READY")) << transcript();
  expect_back_end(GetParam());
  ASSERT_NO_FATAL_FAILURE(pin_vcpus(tandem_->pid(), {0, 0}));
  tandem_->send("gq");
  expect_success();
}

TEST_P(PvTest, OnTwoHostCpusNeitherVcpuSeesTheOtherPreempted) {
  if (!has_two_cpus()) {
    GTEST_SKIP() << "needs two CPUs, which this is without: " << capabilities().where;
  }
  start({.payload = "pv_preempt", .cmdline = "shared=0", .vcpu_count = 2});
  ASSERT_TRUE(reaches("READY")) << transcript();
  ASSERT_NO_FATAL_FAILURE(pin_vcpus(tandem_->pid(), {0, 1}));
  const std::vector<HostCount> host = count_on_host(tandem_->pid());
  ASSERT_EQ(host.size(), 2U);
  tandem_->send("g");
  const auto counted = tandem_->wait_for("COUNTS ", seen_, ChildProcess::Seconds(600));
  ASSERT_TRUE(counted && tandem_->wait_for("\n", *counted)) << transcript();
  // The payload leaves out what it polled while a count grew. No count may have grown for nothing.
  std::istringstream words(tandem_->output().substr(*counted));
  for (size_t index = 0; index < host.size(); ++index) {
    uint64_t of_guest = 0;
    words >> of_guest;
    const uint64_t of_host = host[index].involuntary() + host[index].uninterruptible();
    EXPECT_LE(of_guest, of_host + of_host / 100) << "vCPU " << index;
  }
  tandem_->send("q");
  expect_success();
}

TEST_F(PvRunTest, WithoutPrivilegesOnlyTheKernelKeepsRecords) {
  const std::string back_end = capabilities().kvm_records ? "kernel" : "zeros";
  start_without_privilege(
      {.payload = "pv_preempt", .cmdline = "shared=1 " + reports_argument(back_end), .vcpu_count = 2});
  ASSERT_TRUE(reaches("READY")) << transcript();
  expect_back_end(back_end);
  ASSERT_NO_FATAL_FAILURE(pin_vcpus(tandem_->pid(), {0, 0}));
  tandem_->send("gq");
  expect_success();
}

TEST_P(PvTest, TheViewOfTheDemonstrationShowsIdleVcpusAsNotPreempted) {
  start({.payload = "pv_view", .vcpu_count = 5});
  ASSERT_TRUE(reaches("READY")) << transcript();
  tandem_->send("g");
  expect_success();
  const std::string idle(64, '.');
  EXPECT_NE(tandem_->output().find("vCPU 3 WFI   " + idle), std::string::npos) << transcript();
  EXPECT_NE(tandem_->output().find("vCPU 4 WFI   " + idle), std::string::npos) << transcript();
}

// ---- preempt_count against the host's own counts

/// The payload `pv_count` and the process that runs it.
class PvCountTest : public PvTest {
 protected:
  void SetUp() override {
    if (!knows_preemption(GetParam())) {
      GTEST_SKIP() << "needs a back end that counts, which this is without: " << capabilities().where;
    }
  }

  void start_count(const std::string& cmdline, const std::vector<std::string>& before = {}) {
    start({.payload = "pv_count", .cmdline = cmdline, .vcpu_count = 3}, before);
    ASSERT_TRUE(reaches("START")) << transcript();
  }

  /// Compares what guest and host count. @param least_sleeps  of each contender, so that they weigh something.
  void compare(pid_t process, uint64_t least_sleeps = 0) {
    ASSERT_NO_FATAL_FAILURE(pin_vcpus(process, has_two_cpus() ? std::vector{1U, 0U, 0U} : std::vector{0U, 0U, 0U}));
    const std::vector<HostCount> host = count_on_host(process);
    ASSERT_EQ(host.size(), 3U);
    tandem_->send("g");
    const auto counted = tandem_->wait_for("COUNT ", seen_, ChildProcess::Seconds(600));
    ASSERT_TRUE(counted && tandem_->wait_for("\n", *counted)) << transcript();
    std::istringstream words(tandem_->output().substr(*counted));
    for (size_t index = 1; index < host.size(); ++index) {
      uint64_t of_guest = 0;
      words >> of_guest;
      const uint64_t involuntary = host[index].involuntary();
      const uint64_t sleeps = host[index].uninterruptible();
      const uint64_t of_host = involuntary + sleeps;
      EXPECT_GE(of_guest, 400U);
      EXPECT_GE(sleeps, least_sleeps);
      EXPECT_LE(of_guest > of_host ? of_guest - of_host : of_host - of_guest, of_host / 100)
          << "vCPU " << index << ": the guest counts " << of_guest << ", the host " << involuntary
          << " involuntary switches and " << sleeps << " uninterruptible sleeps";
    }
    tandem_->send("q");
    expect_success();
  }
};

TEST_P(PvCountTest, PreemptCountIsWhatTheHostCounts) {
  ASSERT_NO_FATAL_FAILURE(start_count("switches=1200"));
  compare(tandem_->pid());
}

// A page of the guest's that is read back is waited for without a CPU, by a vCPU that wants to run.
TEST_P(PvCountTest, PreemptCountIncludesTheSleepsOnMemoryThatIsReadBack) {
  if (!capabilities().swap) {
    GTEST_SKIP() << "needs a swap area, which this is without: " << capabilities().where;
  }
  const SwapArea swap;
  ASSERT_EQ(swap.error(), "");
  ASSERT_NO_FATAL_FAILURE(start_count("switches=800 pages=64"));
  const auto paged_out = PagedOutMemory::of(tandem_->pid());
  ASSERT_TRUE(paged_out);
  compare(tandem_->pid(), 40);  // of 800 or a few more: without them the counts are apart
}

TEST_P(PvCountTest, PreemptCountIsTheSameInAPidNamespaceOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(start_count("switches=1200", {"unshare", "-p", "-f"}));
  const std::optional<pid_t> process = only_child(tandem_->pid());
  ASSERT_TRUE(process);
  const KillAtEnd guard(*process);
  compare(*process);
}

// ---- Nothing is left behind

class PvLifetimeTest : public PvTest {
 protected:
  /// Brings the payload up, both its vCPUs on one CPU.
  void boot() {
    ASSERT_TRUE(reaches("BOOT")) << transcript();
    pin_vcpus(tandem_->pid(), {0, 0});
    ASSERT_TRUE(reaches("READY")) << transcript();
  }

  void start_reset() {
    start({.payload = "pv_reset", .cmdline = "quiet=1", .vcpu_count = 2});
    ASSERT_NO_FATAL_FAILURE(boot());
    expect_back_end(GetParam());
  }
};

TEST_P(PvLifetimeTest, HundredResetsZeroTheRegionAndLeaveNothingBehind) {
  constexpr unsigned kResets = 100;
  const BpfObjects before = settled_bpf_objects();
  ASSERT_NO_FATAL_FAILURE(start_reset());
  const BpfObjects during = settled_bpf_objects();
  for (unsigned count = 1; count <= kResets; ++count) {
    tandem_->send("r");
    ASSERT_NO_FATAL_FAILURE(boot()) << "reset " << count;
    ASSERT_EQ(count_bpf_objects(), during) << "reset " << count;
  }
  tandem_->send("q");
  expect_success();
  EXPECT_EQ(await_bpf_objects(before), before);
}

TEST_P(PvLifetimeTest, AKilledMachineLeavesNothingBehind) {
  const BpfObjects before = settled_bpf_objects();
  ASSERT_NO_FATAL_FAILURE(start_reset());
  EXPECT_EQ(settled_bpf_objects() != before, GetParam() == "bpf");
  tandem_->signal(SIGKILL);
  EXPECT_EQ(tandem_->wait(), 128 + SIGKILL);
  EXPECT_EQ(await_bpf_objects(before), before);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, PvTest, testing::ValuesIn(back_ends()), name_of_back_end);
INSTANTIATE_TEST_SUITE_P(BackEnds, PvCountTest, testing::ValuesIn(back_ends()), name_of_back_end);
INSTANTIATE_TEST_SUITE_P(BackEnds, PvLifetimeTest, testing::ValuesIn(back_ends()), name_of_back_end);

// ---- Stolen time

TEST_F(PvRunTest, StolenTimeGrowsOnOneHostCpuAndNeverFalls) {
  start({.payload = "pv_time", .vcpu_count = 2});
  ASSERT_TRUE(reaches("READY")) << transcript();
  ASSERT_NO_FATAL_FAILURE(pin_vcpus(tandem_->pid(), {0, 0}));
  tandem_->send("g");
  expect_success();
}

}  // namespace
}  // namespace tandem::tests
