// SPDX-License-Identifier: Apache-2.0
#include "pv/host/bpf_vcpu_state.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <semaphore>
#include <thread>

#include "tests/harness/uninterruptible_sleeps.hpp"
#include "tests/pv/vcpu_threads.hpp"

namespace tandem::tests {
namespace {

using pv::BpfVcpuState;

constexpr uint64_t kPolls = 20'000'000;

class BpfVcpuStateTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = BpfVcpuState::create();
    ASSERT_TRUE(created) << created.error().message();
    backend_ = *std::move(created);
  }
  BpfVcpuState& backend() { return *backend_; }

 private:
  std::unique_ptr<BpfVcpuState> backend_;
};

TEST_F(BpfVcpuStateTest, NewRegionIsZeroAndWholePages) {
  const std::span<std::byte> region = backend().region();
  EXPECT_EQ(region.size(), pv::kVcpuStateRegionBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(region.data()) % host_page_size(), 0U);
  EXPECT_TRUE(std::all_of(region.begin(), region.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_F(BpfVcpuStateTest, RegionIsReadOnly) {
  EXPECT_EXIT(backend().region()[0] = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(BpfVcpuStateTest, OfTwoVcpusOnOneCpuTheRunningOneSeesTheOtherPreempted) {
  const PollCount count = poll_each_other(backend(), 0, 0, kPolls);
  EXPECT_GE(count.preempted * 100, count.polls * 99) << count.preempted << " of " << count.polls;
}

TEST_F(BpfVcpuStateTest, VcpusOnTwoCpusDoNotSeeEachOtherPreempted) {
  // The host's own tasks take the CPUs too, and are seen: of a few runs one has few of them.
  PollCount count = poll_each_other(backend(), 0, 1, kPolls);
  for (int again = 0; again < 9 && count.preempted * 100 > count.polls; ++again) {
    count = poll_each_other(backend(), 0, 1, kPolls);
  }
  EXPECT_LE(count.preempted * 100, count.polls) << count.preempted << " of " << count.polls;
}

TEST_F(BpfVcpuStateTest, LastRecordOfTheRegionIsKeptToo) {
  std::thread([this] {
    pin_to_cpu(0);
    const AttachedVcpu attached(backend(), pv::kMaxVcpuStateRecords - 1);
    backend().activate(pv::kMaxVcpuStateRecords - 1);
    const uint64_t before = involuntary_switches();
    std::thread rival([] {
      pin_to_cpu(0);
      for (int i = 0; i < 1000; ++i) {
        sched_yield();
      }
    });
    while (involuntary_switches() < before + 100) {
      sched_yield();
    }
    rival.join();
  }).join();
  EXPECT_GE(read_record(backend(), pv::kMaxVcpuStateRecords - 1).preempt_count, 100U);
  EXPECT_EQ(read_record(backend(), pv::kMaxVcpuStateRecords - 1).preempted, 0U);
  EXPECT_TRUE(is_record_zero(backend(), pv::kMaxVcpuStateRecords - 2));
}

TEST_F(BpfVcpuStateTest, VcpuWithoutARecordIsRefused) {
  const Result<void> attached = backend().attach_thread(pv::kMaxVcpuStateRecords);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code(), Errc::kOutOfRange);
}

// As in WFI: an interruptible sleep.
TEST_F(BpfVcpuStateTest, SleepingVcpuIsNotPreempted) {
  std::binary_semaphore wake(0);
  std::atomic<pid_t> tid = 0;
  std::thread sleeper([&] {
    const AttachedVcpu attached(backend(), 0);
    backend().activate(0);
    tid = gettid();
    wake.acquire();
  });
  const auto state = [&tid] {
    std::ifstream stat("/proc/self/task/" + std::to_string(tid) + "/stat");
    std::string number;
    std::string name;
    char letter = '?';
    stat >> number >> name >> letter;
    return letter;
  };
  while (tid == 0 || state() != 'S') {
    std::this_thread::yield();
  }
  uint64_t preempted = 0;
  for (uint64_t i = 0; i < kPolls / 10; ++i) {
    preempted += read_record(backend(), 0).preempted;
  }
  wake.release();
  sleeper.join();
  EXPECT_EQ(preempted, 0U);
}

/// What the child of a vfork saw of its sleeping parent.
struct VforkPoll {
  BpfVcpuState* backend;
  bool saw_preempted;
};

int poll_sleeping_parent(void* argument) {
  auto* poll = static_cast<VforkPoll*>(argument);
  for (int i = 0; i < 100'000'000 && !poll->saw_preempted; ++i) {
    poll->saw_preempted = read_record(*poll->backend, 0).preempted == 1;
  }
  return 0;
}

// A parent sleeps uninterruptibly until its vfork's child is gone, as a thread does on a page that is being read.
TEST_F(BpfVcpuStateTest, UninterruptibleSleepCountsAsPreempted) {
  constexpr uint64_t kSleeps = 100;
  uint64_t seen = 0;
  uint64_t counted = 0;
  uint64_t by_kernel = 0;
  std::thread([&] {
    alignas(16) std::array<std::byte, 65536> stack;
    const AttachedVcpu attached(backend(), 0);
    const uint64_t before = involuntary_switches();
    const auto sleeps = UninterruptibleSleeps::of(gettid());
    ASSERT_TRUE(sleeps);
    backend().activate(0);
    for (uint64_t i = 0; i < kSleeps; ++i) {
      VforkPoll poll{.backend = &backend(), .saw_preempted = false};
      const int child =
          clone(poll_sleeping_parent, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &poll);
      ASSERT_GT(child, 0);
      ASSERT_EQ(waitpid(child, nullptr, 0), child);
      seen += poll.saw_preempted ? 1 : 0;
    }
    counted = read_record(backend(), 0).preempt_count;
    by_kernel = involuntary_switches() - before + sleeps->count().value();
  }).join();
  EXPECT_EQ(seen, kSleeps);
  // A preemption on the way into the interruptible sleep of waitpid is the kernel's only; so is one before activation.
  EXPECT_GE(counted, kSleeps);
  EXPECT_LE(counted, by_kernel);
}

TEST_F(BpfVcpuStateTest, CountIsTheKernelsOwnOfInvoluntarySwitches) {
  const SwitchCount count = count_switches_under_contention(backend(), 20'000);
  EXPECT_GT(count.by_kernel, 10'000U);
  EXPECT_TRUE(agree(count)) << count.by_backend << " for the kernel's " << count.by_kernel;
}

TEST_F(BpfVcpuStateTest, InactiveVcpuUnderContentionStaysZero) {
  std::atomic<int> started = 0;
  std::atomic<int> finished = 0;
  const auto contend = [&](unsigned vcpu) {
    pin_to_cpu(0);
    const AttachedVcpu attached(backend(), vcpu);
    ++started;
    spin_until(started, 2);
    const uint64_t before = involuntary_switches();
    while (involuntary_switches() < before + 200) {
      sched_yield();
      EXPECT_TRUE(is_record_zero(backend(), 1 - vcpu));
    }
    ++finished;
    while (finished < 2) {
      sched_yield();
    }
  };
  std::thread first(contend, 0);
  std::thread second(contend, 1);
  first.join();
  second.join();
  EXPECT_TRUE(is_record_zero(backend(), 0));
  EXPECT_TRUE(is_record_zero(backend(), 1));
}

TEST_F(BpfVcpuStateTest, ActivatingTwiceKeepsTheCountAndDeactivatingZeroesIt) {
  std::thread([this] {
    const AttachedVcpu attached(backend(), 0);
    backend().activate(0);
    pin_to_cpu(0);
    const uint64_t before = involuntary_switches();
    std::thread rival([] {
      pin_to_cpu(0);
      for (int i = 0; i < 1000; ++i) {
        sched_yield();
      }
    });
    while (involuntary_switches() < before + 10) {
      sched_yield();
    }
    rival.join();
    const uint64_t count = read_record(backend(), 0).preempt_count;
    EXPECT_GE(count, 10U);
    backend().activate(0);
    EXPECT_GE(read_record(backend(), 0).preempt_count, count);
    backend().deactivate(0);
    EXPECT_TRUE(is_record_zero(backend(), 0));
    backend().deactivate(0);
    EXPECT_TRUE(is_record_zero(backend(), 0));
  }).join();
}

// The contract has the vCPU parked then; a parked thread may still be on its way to sleep, on another CPU.
TEST_F(BpfVcpuStateTest, DeactivatingAVcpuThatIsBeingSwitchedLeavesZero) {
  constexpr int kRounds = 2'000'000;
  std::atomic<bool> stop = false;
  std::atomic<int> attached_count = 0;
  const auto switch_all_the_time = [&](unsigned vcpu) {
    pin_to_cpu(0);
    const AttachedVcpu attached(backend(), vcpu);
    ++attached_count;
    while (!stop) {
      sched_yield();
    }
  };
  std::thread first(switch_all_the_time, 0);
  std::thread second(switch_all_the_time, 1);
  pin_to_cpu(1);
  spin_until(attached_count, 2);
  int seen_preempted = 0;
  int left_behind = 0;
  for (int round = 0; round < kRounds; ++round) {
    backend().activate(0);
    for (int wait = 0; wait < round % 16; ++wait) {
      seen_preempted += static_cast<int>(read_record(backend(), 0).preempted);
    }
    backend().deactivate(0);
    for (int look = 0; look < 4; ++look) {
      left_behind += is_record_zero(backend(), 0) ? 0 : 1;
    }
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_GT(seen_preempted, 0);
  EXPECT_EQ(left_behind, 0);
}

TEST_F(BpfVcpuStateTest, ThreadOfOneMachineDoesNotTouchTheRecordsOfAnother) {
  auto other = BpfVcpuState::create();
  ASSERT_TRUE(other) << other.error().message();
  (*other)->activate(0);
  EXPECT_TRUE(agree(count_switches_under_contention(backend(), 2'000)));
  EXPECT_TRUE(is_record_zero(**other, 0));
}

TEST_F(BpfVcpuStateTest, ThreadThatEndedWithoutDetachingLeavesNothingRunning) {
  std::thread([this] { ASSERT_TRUE(backend().attach_thread(0)); }).join();
  backend().activate(0);
  EXPECT_TRUE(agree(count_switches_under_contention(backend(), 2'000)));
  EXPECT_TRUE(is_record_zero(backend(), 0));
}

}  // namespace
}  // namespace tandem::tests
