// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/vcpu_thread.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/fakes/fake_machine_events.hpp"
#include "tests/fakes/fake_thread_listener.hpp"
#include "tests/fakes/fake_vcpu.hpp"

namespace tandem {
namespace {

class VcpuThreadTest : public ::testing::Test {
 protected:
  devices::MmioBus bus_;
  devices::HypercallBus hypercalls_;
  FakeMachineEvents events_;
  ExitDispatcher dispatcher_{bus_, hypercalls_, events_};
  FakeVcpu vcpu_;
  FakeThreadListener listener_;
  std::unique_ptr<VcpuThread> thread_ = VcpuThread::create(vcpu_, dispatcher_, listener_).value();
};

TEST_F(VcpuThreadTest, StartsParked) {
  EXPECT_EQ(vcpu_.runs(), 0U);
  EXPECT_GT(thread_->thread_id(), 0);
}

TEST_F(VcpuThreadTest, ParksARunningVcpuAndFinishesItsMmio) {
  thread_->unpark();
  vcpu_.wait_for_runs(1);
  const int finished_before = vcpu_.finished;
  thread_->request_park();
  thread_->wait_parked();
  EXPECT_EQ(vcpu_.finished, finished_before + 1);
  EXPECT_EQ(vcpu_.runs(), 1U);
}

TEST_F(VcpuThreadTest, ParkRightAfterUnparkIsNotLost) {
  for (int round = 0; round < 1000; ++round) {
    thread_->unpark();
    thread_->request_park();
    thread_->wait_parked();
  }
  const unsigned runs = vcpu_.runs();
  thread_->unpark();
  vcpu_.wait_for_runs(runs + 1);
}

TEST_F(VcpuThreadTest, AVcpuThatAsksForResetIsNotEnteredAgainBeforeUnpark) {
  vcpu_.script(SystemResetExit{});
  thread_->unpark();
  vcpu_.wait_for_runs(1);
  thread_->request_park();
  thread_->wait_parked();
  EXPECT_EQ(vcpu_.runs(), 1U);
  EXPECT_EQ(events_.resets.size(), 1U);
  thread_->unpark();
  vcpu_.wait_for_runs(2);
}

TEST_F(VcpuThreadTest, ABlockedVcpuDoesNotEnterTheGuestBeforeItIsUnblocked) {
  thread_->block();
  thread_->unpark();
  thread_->request_park();
  thread_->wait_parked();
  EXPECT_EQ(vcpu_.runs(), 0U);
  thread_->unpark();
  thread_->unblock();
  vcpu_.wait_for_runs(1);
}

TEST_F(VcpuThreadTest, BlockingLeavesTheGuestAndAParkedVcpuStaysParked) {
  thread_->unpark();
  vcpu_.wait_for_runs(1);
  thread_->block();
  thread_->request_park();
  thread_->wait_parked();
  thread_->unblock();
  EXPECT_EQ(vcpu_.runs(), 1U);
  thread_->unpark();
  vcpu_.wait_for_runs(2);
}

TEST_F(VcpuThreadTest, ABlockIsNotLostRightAfterAnUnblock) {
  thread_->unpark();
  for (int round = 0; round < 1000; ++round) {
    thread_->block();
    thread_->unblock();
  }
  const unsigned runs = vcpu_.runs();
  thread_->request_park();
  thread_->wait_parked();
  thread_->unpark();
  vcpu_.wait_for_runs(runs + 1);
}

TEST_F(VcpuThreadTest, StopsWhileItIsBlocked) {
  thread_->block();
  thread_->unpark();
  thread_.reset();
}

TEST_F(VcpuThreadTest, CanBeKickedThoughItsCreatorBlocksAllSignals) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  FakeVcpu vcpu;
  FakeThreadListener listener;
  const auto thread = VcpuThread::create(vcpu, dispatcher_, listener).value();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  thread->unpark();
  vcpu.wait_for_runs(1);
  EXPECT_EQ(sigismember(&vcpu.blocked_signals, SIGRTMIN), 0);
  EXPECT_EQ(sigismember(&vcpu.blocked_signals, SIGTERM), 1) << "signals of the process are for others to take";
}

TEST_F(VcpuThreadTest, StopsWhileTheGuestRuns) {
  thread_->unpark();
  vcpu_.wait_for_runs(1);
  thread_.reset();
}

TEST_F(VcpuThreadTest, TheListenerIsToldOfTheStartOnTheThreadItself) {
  EXPECT_EQ(listener_.started_vcpu, vcpu_.index());
  EXPECT_EQ(listener_.start_thread, thread_->thread_id());
  EXPECT_EQ(vcpu_.runs(), 0U);
}

TEST_F(VcpuThreadTest, TheListenerIsToldOfTheEndOnTheThreadItself) {
  thread_->unpark();
  vcpu_.wait_for_runs(1);
  const pid_t thread_id = thread_->thread_id();
  EXPECT_EQ(listener_.ended_vcpu, std::nullopt);
  thread_.reset();
  EXPECT_EQ(listener_.ended_vcpu, vcpu_.index());
  EXPECT_EQ(listener_.end_thread, thread_id);
}

TEST_F(VcpuThreadTest, AListenerThatFailsAtTheStartLeavesNoThread) {
  FakeThreadListener listener;
  listener.start_result = fail(Errc::kPermission, "no");
  FakeVcpu vcpu;
  const auto made = VcpuThread::create(vcpu, dispatcher_, listener);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(), "vCPU 3: no");
  EXPECT_EQ(vcpu.runs(), 0U);
  EXPECT_EQ(listener.ended_vcpu, std::nullopt);
}

}  // namespace
}  // namespace tandem
