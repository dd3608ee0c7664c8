// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/exit_dispatcher.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_machine_events.hpp"
#include "tests/fakes/fake_vcpu.hpp"

namespace tandem {
namespace {

/// Answers every read with one value, and keeps the last write.
struct OneRegister final : devices::MmioHandler {
  devices::MmioRead read(devices::MmioAccess /*access*/) override { return 0x55; }
  devices::MmioWrite write(devices::MmioAccess access, uint64_t value) override {
    offset = access.offset;
    written = value;
    return {};
  }
  uint64_t offset = 0;
  uint64_t written = 0;
};

/// Answers every call with its first argument, and keeps the caller.
struct EchoService final : devices::HypercallHandler {
  uint64_t call(const devices::Hypercall& hypercall) override {
    caller = hypercall.vcpu;
    return hypercall.arguments[0];
  }
  unsigned caller = 0;
};

class ExitDispatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(bus_.map(GuestRange::fixed(0x1000, 0x1000), "register", register_, mutex_));
    ASSERT_TRUE(hypercalls_.map({.first = 0xc600'0000, .count = 1}, "echo", echo_, mutex_));
  }
  static HypercallExit call(devices::Hypercall::Conduit conduit) {
    return {.conduit = conduit, .function = 0xc600'0000, .arguments = {0x1122'3344'5566'7788, 0, 0}};
  }
  OneRegister register_;
  std::mutex mutex_;
  devices::MmioBus bus_;
  EchoService echo_;
  devices::HypercallBus hypercalls_;
  FakeMachineEvents events_;
  FakeVcpu vcpu_;
  ExitDispatcher dispatcher_{bus_, hypercalls_, events_};
};

TEST_F(ExitDispatcherTest, AReadIsCompletedWithTheBusValue) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, MmioReadExit{GuestAddr(0x1000), 4}), AfterExit::kContinue);
  EXPECT_EQ(vcpu_.read_value, 0x55U);
}

TEST_F(ExitDispatcherTest, AReadOfNothingIsCompletedWithZero) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, MmioReadExit{GuestAddr(0x9000), 8}), AfterExit::kContinue);
  EXPECT_EQ(vcpu_.read_value, 0U);
}

TEST_F(ExitDispatcherTest, AWriteReachesTheBus) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, MmioWriteExit{GuestAddr(0x1010), 4, 7}), AfterExit::kContinue);
  EXPECT_EQ(register_.offset, 0x10U);
  EXPECT_EQ(register_.written, 7U);
}

TEST_F(ExitDispatcherTest, AnUndecodedAccessBecomesAnExternalAbort) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, UndecodedAccessExit{GuestAddr(0x1000)}), AfterExit::kContinue);
  EXPECT_EQ(vcpu_.aborts, 1);
}

TEST_F(ExitDispatcherTest, AnAbortThatCannotBeInjectedIsACrash) {
  vcpu_.abort_result = fail(Errc::kIo, "no");
  EXPECT_EQ(dispatcher_.handle(vcpu_, UndecodedAccessExit{GuestAddr(0x1000)}), AfterExit::kPark);
  ASSERT_EQ(events_.crashes.size(), 1U);
}

TEST_F(ExitDispatcherTest, ACallIsCompletedWithTheHandlersValue) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, call(devices::Hypercall::Conduit::kHvc)), AfterExit::kContinue);
  EXPECT_EQ(vcpu_.hypercall_result, 0x1122'3344'5566'7788U);
  EXPECT_EQ(echo_.caller, vcpu_.index());
}

TEST_F(ExitDispatcherTest, ACallBySmcIsCompletedWithNotSupported) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, call(devices::Hypercall::Conduit::kSmc)), AfterExit::kContinue);
  EXPECT_EQ(vcpu_.hypercall_result, devices::kHypercallNotSupported);
}

TEST_F(ExitDispatcherTest, ACallThatCannotBeCompletedIsACrash) {
  vcpu_.complete_result = fail(Errc::kIo, "no");
  EXPECT_EQ(dispatcher_.handle(vcpu_, call(devices::Hypercall::Conduit::kHvc)), AfterExit::kPark);
  ASSERT_EQ(events_.crashes.size(), 1U);
}

TEST_F(ExitDispatcherTest, SystemOffParksTheCaller) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, SystemOffExit{}), AfterExit::kPark);
  EXPECT_EQ(events_.offs, 1);
}

TEST_F(ExitDispatcherTest, SystemReset2KeepsTypeAndCookie) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, SystemResetExit{true, 0x80000001, 42}), AfterExit::kPark);
  ASSERT_EQ(events_.resets.size(), 1U);
  EXPECT_EQ(events_.resets[0].reset_type, 0x80000001U);
  EXPECT_EQ(events_.resets[0].cookie, 42U);
}

TEST_F(ExitDispatcherTest, AFailureNamesTheVcpu) {
  EXPECT_EQ(dispatcher_.handle(vcpu_, FailureExit{"KVM_RUN: Bad address"}), AfterExit::kPark);
  ASSERT_EQ(events_.crashes.size(), 1U);
  EXPECT_EQ(events_.crashes[0], "vCPU 3: KVM_RUN: Bad address");
}

}  // namespace
}  // namespace tandem
