// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/event_loop/event_loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace tandem {
namespace {

class EventLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
  }
  void write_byte() const { ASSERT_EQ(::write(write_end_.get(), "x", 1), 1); }

  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  UniqueFd read_end_;
  UniqueFd write_end_;
  int calls_ = 0;
};

TEST_F(EventLoopTest, CallsBackWhenReadable) {
  const auto watch = loop_->watch(read_end_.get(), Events::kReadable, [this](Events) { ++calls_; }).value();
  EXPECT_EQ(loop_->run_ready(), 0U);
  write_byte();
  EXPECT_EQ(loop_->run_ready(), 1U);
  EXPECT_EQ(calls_, 1);
}

TEST_F(EventLoopTest, ADisarmedWatchIsSilentEvenOnHangUp) {
  auto watch = loop_->watch(read_end_.get(), Events::kReadable, [this](Events) { ++calls_; }).value();
  watch.set_events(Events::kNone);
  write_end_.reset();
  loop_->run_ready();
  EXPECT_EQ(calls_, 0);
  watch.set_events(Events::kReadable);
  loop_->run_ready();
  EXPECT_EQ(calls_, 1);
}

TEST_F(EventLoopTest, AnErrorIsReportedToWhoeverWaitsToWrite) {
  ASSERT_EQ(::fcntl(write_end_.get(), F_SETFL, O_NONBLOCK), 0);
  while (::write(write_end_.get(), "x", 1) == 1) {
  }
  Events reported = Events::kNone;
  const auto watch = loop_->watch(write_end_.get(), Events::kWritable, [&](Events which) { reported = which; }).value();
  EXPECT_EQ(loop_->run_ready(), 0U);
  read_end_.reset();
  loop_->run_ready();
  EXPECT_TRUE(has(reported, Events::kWritable));
}

TEST_F(EventLoopTest, ARemovedWatchIsNotCalledInTheSameRound) {
  EventLoop::Watch second;
  const auto first = loop_->watch(read_end_.get(), Events::kReadable, [&](Events) { second = {}; }).value();
  UniqueFd event = create_eventfd().value();
  second = loop_->watch(event.get(), Events::kReadable, [this](Events) { ++calls_; }).value();
  write_byte();
  signal_eventfd(event.get());
  loop_->run_ready();
  loop_->run_ready();
  EXPECT_LE(calls_, 1);
  EXPECT_FALSE(second);
}

TEST_F(EventLoopTest, RegularFilesAreRefused) {
  UniqueFd file(::fileno(std::tmpfile()));
  const auto watch = loop_->watch(file.get(), Events::kReadable, [](Events) {});
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code(), Errc::kPermission);
}

TEST_F(EventLoopTest, PostedTasksRunOnTheLoopAndStopEndsIt) {
  std::thread::id ran_on;
  std::thread thread([this] { loop_->run(); });
  const auto loop_thread = thread.get_id();
  loop_->post([&] {
    ran_on = std::this_thread::get_id();
    loop_->stop();
  });
  thread.join();
  EXPECT_EQ(ran_on, loop_thread);
}

TEST_F(EventLoopTest, StopBeforeRunIsNotLost) {
  loop_->stop();
  loop_->run();
}

}  // namespace
}  // namespace tandem
