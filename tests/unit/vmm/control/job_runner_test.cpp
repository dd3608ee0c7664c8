// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/job_runner.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <latch>
#include <vector>

namespace tandem::control {
namespace {

class JobRunnerTest : public testing::Test {
 protected:
  JobRunner::Listener listener() {
    return {.on_progress = [this](const JobProgress& progress) { heard_.push_back(progress); },
            .on_end =
                [this](Result<Json> result) {
                  ended_ = std::move(result);
                  loop_->stop();
                }};
  }
  /// Waits until it is told to stop.
  static Result<Json> wait_for_cancel(JobContext& context) {
    pollfd entry{.fd = context.cancel_fd(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, -1);
    return context.is_cancelled() ? Result<Json>(fail(Errc::kIo, "cancelled")) : Result<Json>(Json{});
  }

  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::vector<JobProgress> heard_;
  std::optional<Result<Json>> ended_;
  std::unique_ptr<JobRunner> runner_ = std::move(JobRunner::create(*loop_)).value();
};

TEST_F(JobRunnerTest, AJobReportsAndEndsOnTheLoop) {
  const auto work = [](JobContext& context) {
    context.report({.phase = "memory", .done = 1, .total = 2});
    return Result<Json>(Json{{"bytes", 2}});
  };
  ASSERT_TRUE(runner_->start({.command = "save", .work = work}, listener()));
  loop_->run();
  ASSERT_TRUE(ended_ && *ended_);
  EXPECT_EQ((**ended_)["bytes"], 2);
  ASSERT_FALSE(heard_.empty());
  EXPECT_EQ(heard_.back(), (JobProgress{.phase = "memory", .done = 1, .total = 2}));
  EXPECT_EQ(runner_->running(), "");
}

TEST_F(JobRunnerTest, ASecondJobIsRefusedByTheNameOfTheFirst) {
  ASSERT_TRUE(runner_->start({.command = "save", .work = wait_for_cancel}, listener()));
  EXPECT_EQ(runner_->running(), "save");
  const auto second = runner_->start({.command = "migrate", .work = wait_for_cancel}, listener());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::kBusy);
  EXPECT_EQ(second.error().message(), "save in progress");
}

TEST_F(JobRunnerTest, ACancelledJobSaysHowItEndedAndMakesRoom) {
  ASSERT_TRUE(runner_->start({.command = "save", .work = wait_for_cancel}, listener()));
  EXPECT_FALSE(runner_->cancel("migrate"));
  ASSERT_TRUE(runner_->cancel("save"));
  loop_->run();
  ASSERT_TRUE(ended_ && !*ended_);
  EXPECT_EQ(ended_->error().message(), "cancelled");
  EXPECT_FALSE(runner_->cancel("save"));
  EXPECT_TRUE(runner_->start({.command = "save", .work = wait_for_cancel}, listener()));
}

TEST_F(JobRunnerTest, AJobMayStartTheNextFromItsEnd) {
  const auto work = [](JobContext&) { return Result<Json>(Json{}); };
  std::optional<Result<void>> next;
  ASSERT_TRUE(runner_->start({.command = "save", .work = work}, {.on_end = [&](Result<Json>) {
                               next = runner_->start({.command = "save", .work = work}, listener());
                             }}));
  loop_->run();
  ASSERT_TRUE(next && *next);
  EXPECT_TRUE(ended_ && *ended_);
}

TEST_F(JobRunnerTest, FinishCancelsWaitsAndTellsTheEnd) {
  ASSERT_TRUE(runner_->start({.command = "save", .work = wait_for_cancel}, listener()));
  runner_->finish();
  ASSERT_TRUE(ended_ && !*ended_);
  EXPECT_EQ(ended_->error().message(), "cancelled");
}

TEST_F(JobRunnerTest, TheEndOfTheRunnerEndsAJob) {
  std::latch started(1);
  ASSERT_TRUE(runner_->start({.command = "save",
                              .work =
                                  [&](JobContext& context) {
                                    started.count_down();
                                    return wait_for_cancel(context);
                                  }},
                             {}));
  started.wait();
  runner_.reset();
}

}  // namespace
}  // namespace tandem::control
