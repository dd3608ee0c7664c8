// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/event_loop/loop_calls.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace tandem {
namespace {

class LoopCallsTest : public testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  LoopCalls calls_{*loop_};
};

TEST_F(LoopCallsTest, ACallRunsOnTheLoopsThreadAndItsResultComesBack) {
  Result<std::thread::id> where = fail(Errc::kIo, "not called");
  std::thread caller([&] {
    where = calls_.run([] { return Result<std::thread::id>(std::this_thread::get_id()); });
    loop_->stop();
  });
  loop_->run();
  caller.join();
  ASSERT_TRUE(where) << where.error().message();
  EXPECT_EQ(*where, std::this_thread::get_id());
}

TEST_F(LoopCallsTest, AnErrorComesBack) {
  Result<void> outcome;
  std::thread caller([&] {
    outcome = calls_.run([] { return Result<void>(fail(Errc::kBusy, "later")); });
    loop_->stop();
  });
  loop_->run();
  caller.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message(), "later");
}

TEST_F(LoopCallsTest, WhoWaitsWhenTheLoopEndsIsSentAwayAndTheCallNeverRuns) {
  bool has_run = false;
  Result<void> outcome;
  std::latch entered(1);
  std::thread caller([&] {
    entered.count_down();
    outcome = calls_.run([&] {
      has_run = true;
      return Result<void>();
    });
  });
  entered.wait();
  calls_.close();
  caller.join();
  loop_->run_ready();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Errc::kClosed);
  EXPECT_FALSE(has_run);
}

TEST_F(LoopCallsTest, WhoComesAfterTheEndIsSentAway) {
  calls_.close();
  const auto outcome = calls_.run([] { return Result<int>(1); });
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), Errc::kClosed);
}

}  // namespace
}  // namespace tandem
