// SPDX-License-Identifier: Apache-2.0
#include "devices/rtc_pl031/rtc_pl031.hpp"

#include <gtest/gtest.h>

#include "devices/rtc_pl031/rtc_pl031_regs.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_timer.hpp"

namespace tandem::devices {
namespace {

using namespace pl031;

constexpr Intid kIntid = Intid::spi(2);
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kNow = 1'800'000'000;

class RtcPl031Test : public ::testing::Test {
 protected:
  uint64_t read(uint64_t offset) { return rtc_.read({.offset = offset, .width_bytes = 4}).value(); }
  void write(uint64_t offset, uint64_t value) { ASSERT_TRUE(rtc_.write({.offset = offset, .width_bytes = 4}, value)); }
  void advance_s(int64_t seconds) { clock_.advance_ns(seconds * kNsPerSecond); }
  [[nodiscard]] bool irq() const { return sink_.level(kIntid); }

  FakeIrqSink sink_;
  FakeClock clock_{kNow * kNsPerSecond + 999'999'999};
  std::unique_ptr<FakeTimer> owned_timer_ = std::make_unique<FakeTimer>();
  FakeTimer& timer_ = *owned_timer_;
  RtcPl031 rtc_{"rtc0", IrqLine(sink_, kIntid), clock_, std::move(owned_timer_)};
};

TEST_F(RtcPl031Test, ShowsTheHostsTimeInSeconds) {
  EXPECT_EQ(read(RTCDR), static_cast<uint64_t>(kNow));
  clock_.advance_ns(1);
  EXPECT_EQ(read(RTCDR), static_cast<uint64_t>(kNow + 1));
}

TEST_F(RtcPl031Test, IsRunningAndCannotBeStopped) {
  EXPECT_EQ(read(RTCCR), 1U);
  write(RTCCR, 0);
  EXPECT_EQ(read(RTCCR), 1U);
}

TEST_F(RtcPl031Test, LoadSetsTheClockWhichGoesOnFromThere) {
  write(RTCLR, 1000);
  EXPECT_EQ(read(RTCDR), 1000U);
  EXPECT_EQ(read(RTCLR), 1000U);
  advance_s(5);
  EXPECT_EQ(read(RTCDR), 1005U);
  EXPECT_EQ(read(RTCLR), 1000U);
}

TEST_F(RtcPl031Test, ClockWrapsAt32Bits) {
  write(RTCLR, 0xffffffff);
  advance_s(2);
  EXPECT_EQ(read(RTCDR), 1U);
}

TEST_F(RtcPl031Test, AlarmComesWhenTheClockReachesTheMatchRegister) {
  write(RTCMR, kNow + 10);
  write(RTCIMSC, 1);
  EXPECT_EQ(timer_.deadline_ns(), (kNow + 10) * kNsPerSecond);
  advance_s(9);
  timer_.fire();
  EXPECT_FALSE(irq());
  EXPECT_EQ(timer_.deadline_ns(), (kNow + 10) * kNsPerSecond);
  advance_s(1);
  timer_.fire();
  EXPECT_TRUE(irq());
  EXPECT_EQ(read(RTCRIS), 1U);
  EXPECT_EQ(read(RTCMIS), 1U);
}

TEST_F(RtcPl031Test, AlarmThatTheHostsClockSkippedIsGiven) {
  write(RTCMR, kNow + 10);
  write(RTCIMSC, 1);
  advance_s(3600);
  timer_.fire();
  EXPECT_TRUE(irq());
}

TEST_F(RtcPl031Test, MatchWithTheCurrentTimeIsGivenAtOnce) {
  write(RTCIMSC, 1);
  write(RTCMR, kNow);
  EXPECT_TRUE(irq());
}

TEST_F(RtcPl031Test, AMatchInThePastIsNone) {
  write(RTCIMSC, 1);
  write(RTCMR, kNow - 1);
  advance_s(100);
  timer_.fire();
  EXPECT_FALSE(irq());
}

TEST_F(RtcPl031Test, MaskedAlarmIsPendingButGivesNoInterrupt) {
  write(RTCMR, kNow);
  EXPECT_FALSE(irq());
  EXPECT_EQ(read(RTCRIS), 1U);
  EXPECT_EQ(read(RTCMIS), 0U);
  write(RTCIMSC, 1);
  EXPECT_TRUE(irq());
}

TEST_F(RtcPl031Test, ClearEndsTheInterruptUntilTheNextMatch) {
  write(RTCIMSC, 1);
  write(RTCMR, kNow);
  write(RTCICR, 1);
  EXPECT_FALSE(irq());
  advance_s(1);
  EXPECT_EQ(read(RTCRIS), 0U);
}

TEST_F(RtcPl031Test, HostsClockSetBackGivesNoAlarm) {
  write(RTCIMSC, 1);
  write(RTCMR, kNow + 10);
  advance_s(-3600);
  timer_.fire();
  EXPECT_FALSE(irq());
  EXPECT_EQ(read(RTCDR), static_cast<uint64_t>(kNow - 3600));
}

TEST_F(RtcPl031Test, AlarmDueWhilePausedIsGivenOnResume) {
  write(RTCMR, kNow + 10);
  write(RTCIMSC, 1);
  ASSERT_TRUE(rtc_.pause());
  EXPECT_FALSE(timer_.is_armed());
  advance_s(100);
  EXPECT_FALSE(irq());
  ASSERT_TRUE(rtc_.resume());
  EXPECT_TRUE(irq());
}

TEST_F(RtcPl031Test, RestoredClockKeepsItsOffsetAndGivesTheAlarmThatWasDueMeanwhile) {
  write(RTCLR, 1000);
  write(RTCMR, 1010);
  write(RTCIMSC, 1);
  ASSERT_TRUE(rtc_.pause());
  const StateRecord record = rtc_.save().value();
  advance_s(100);
  FakeIrqSink other_sink;
  RtcPl031 other("rtc0", IrqLine(other_sink, kIntid), clock_, std::make_unique<FakeTimer>());
  ASSERT_TRUE(other.pause());
  ASSERT_TRUE(other.restore(record));
  EXPECT_EQ(other_sink.call_count(), 0U);
  ASSERT_TRUE(other.resume());
  EXPECT_EQ(other.read({RTCDR, 4}).value(), 1100U);
  EXPECT_TRUE(other_sink.level(kIntid));
}

TEST_F(RtcPl031Test, TheWireOfARestoredClockHasItsLevelWithoutAnEdge) {
  write(RTCMR, kNow);
  write(RTCIMSC, 1);
  ASSERT_TRUE(irq());
  ASSERT_TRUE(rtc_.pause());
  FakeIrqSink other_sink;
  RtcPl031 other("rtc0", IrqLine(other_sink, kIntid), clock_, std::make_unique<FakeTimer>());
  ASSERT_TRUE(other.pause());
  ASSERT_TRUE(other.restore(rtc_.save().value()));
  EXPECT_TRUE(other_sink.level(kIntid));
  EXPECT_EQ(other_sink.edge_count(kIntid), 0U);
}

TEST_F(RtcPl031Test, CanGoOnFromTheTimeOfThePause) {
  write(RTCMR, kNow + 10);
  write(RTCIMSC, 1);
  ASSERT_TRUE(rtc_.pause());
  advance_s(100);
  rtc_.go_on_from_pause();
  ASSERT_TRUE(rtc_.resume());
  EXPECT_EQ(read(RTCDR), static_cast<uint64_t>(kNow));
  EXPECT_FALSE(irq());
  EXPECT_EQ(timer_.deadline_ns(), (kNow + 110) * kNsPerSecond);
}

TEST_F(RtcPl031Test, IdentifiesItself) {
  EXPECT_EQ(read(0xfe0), 0x31U);
  EXPECT_EQ(read(0xfe4), 0x10U);
  EXPECT_EQ(read(0xff4), 0xf0U);
}

TEST_F(RtcPl031Test, DataRegisterCannotBeWritten) {
  EXPECT_EQ(rtc_.write({RTCDR, 4}, 1).error(), BadAccess::kReadOnly);
}

}  // namespace
}  // namespace tandem::devices
