// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/vcpu_throttle.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_machine_events.hpp"
#include "tests/fakes/fake_thread_listener.hpp"
#include "tests/fakes/fake_vcpu.hpp"

namespace tandem {
namespace {

class VcpuThrottleTest : public ::testing::Test {
 protected:
  devices::MmioBus bus_;
  devices::HypercallBus hypercalls_;
  FakeMachineEvents events_;
  ExitDispatcher dispatcher_{bus_, hypercalls_, events_};
  FakeVcpu vcpu_;
  FakeThreadListener listener_;
  std::unique_ptr<VcpuThread> thread_ = VcpuThread::create(vcpu_, dispatcher_, listener_).value();
};

TEST_F(VcpuThrottleTest, MakesARunningVcpuLeaveTheGuestAgainAndAgain) {
  const auto throttle = VcpuThrottle::create({thread_.get()}).value();
  thread_->unpark();
  vcpu_.wait_for_runs(1);
  throttle->set_percent(20);
  vcpu_.wait_for_runs(3);  // each run but the last was ended by the throttle
}

TEST_F(VcpuThrottleTest, AThrottledVcpuCanBeParked) {
  const auto throttle = VcpuThrottle::create({thread_.get()}).value();
  throttle->set_percent(99);
  for (int round = 0; round < 10; ++round) {
    thread_->unpark();
    thread_->request_park();
    thread_->wait_parked();
  }
}

TEST_F(VcpuThrottleTest, ItsEndLetsTheVcpuRun) {
  {
    const auto throttle = VcpuThrottle::create({thread_.get()}).value();
    throttle->set_percent(99);
    thread_->unpark();
  }
  vcpu_.wait_for_runs(1);
}

}  // namespace
}  // namespace tandem
