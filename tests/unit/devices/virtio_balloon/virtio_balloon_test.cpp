// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_balloon/virtio_balloon.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "devices/virtio_balloon/virtio_balloon_state.hpp"
#include "tests/fakes/virtio_rig.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_balloon;

namespace {

/// Number of the first page of RAM.
constexpr auto kRamPage = static_cast<uint32_t>(FakeRam::kBase.value() / kPageBytes);
constexpr uint64_t kFeatures = kFMustTellHost | kFStatsVq | kFDeflateOnOom | kFPageReporting;

/// Keeps what is discarded.
struct RecordingDiscard final : PageDiscard {
  Result<void> discard(GuestRange range) override {
    if (is_broken) {
      return fail(Errc::kIo, "madvise");
    }
    ranges.push_back(range);
    return {};
  }
  [[nodiscard]] uint64_t bytes() const {
    return std::accumulate(ranges.begin(), ranges.end(), uint64_t{0},
                           [](uint64_t sum, const GuestRange& range) { return sum + range.size(); });
  }
  std::vector<GuestRange> ranges;
  bool is_broken = false;
};

GuestRange pages_from(uint32_t page, uint64_t count) {
  return GuestRange::create(GuestAddr(page * kPageBytes), count * kPageBytes).value();
}

class VirtioBalloonTest : public ::testing::Test {
 protected:
  void set_up(uint64_t features = kFeatures) { rig_.activate(balloon_, features); }

  /// Puts `pages` on `queue` as one buffer, and tells the device.
  void give(uint16_t queue, const std::vector<uint32_t>& pages) {
    rig_.driver(queue).chain().readable(std::as_bytes(std::span(pages))).submit();
    balloon_.notify(queue);
  }
  /// One statistics entry as the driver writes it.
  static std::vector<std::byte> entry(uint16_t tag, uint64_t value) {
    std::vector<std::byte> bytes(kStatEntryBytes);
    store_le(std::span(bytes), tag);
    store_le(std::span(bytes).subspan(kStatTagBytes), value);
    return bytes;
  }
  void give_stats(const std::vector<std::byte>& bytes) {
    rig_.driver(kStatsQueue).chain().readable(std::span<const std::byte>(bytes)).submit();
    balloon_.notify(kStatsQueue);
  }
  template <typename T>
  T config(uint64_t offset) {
    std::array<std::byte, sizeof(T)> bytes{};
    balloon_.read_config(offset, bytes);
    return load_le<T>(bytes);
  }
  void write_config(uint64_t offset, uint32_t value, size_t size_bytes = 4) {
    std::array<std::byte, 4> bytes{};
    store_le(std::span<std::byte>(bytes), value);
    balloon_.write_config(offset, std::span(bytes).first(size_bytes));
  }

  VirtioRig rig_{16U << 20};
  RecordingDiscard ram_;
  VirtioBalloon balloon_{"balloon0", rig_.executor(), ram_, 4096};
};

// --- Configuration and target ---

TEST_F(VirtioBalloonTest, IsABalloonWithFiveQueues) {
  EXPECT_EQ(balloon_.device_id(), 5U);
  EXPECT_EQ(balloon_.queue_sizes().size(), kQueueCount);
  EXPECT_EQ(balloon_.device_features(), kFeatures);
}

TEST_F(VirtioBalloonTest, TheTargetIsInConfigurationSpace) {
  ASSERT_TRUE(balloon_.set_target(64U << 20));
  EXPECT_EQ(config<uint32_t>(kNumPages), (64U << 20) / 4096);
  EXPECT_EQ(balloon_.target_bytes(), 64U << 20);
}

TEST_F(VirtioBalloonTest, ANewTargetInterruptsTheDriver) {
  set_up();
  ASSERT_TRUE(balloon_.set_target(1U << 20));
  EXPECT_EQ(rig_.transport().config_count(), 1U);
  ASSERT_TRUE(balloon_.set_target(1U << 20));
  EXPECT_EQ(rig_.transport().config_count(), 1U) << "nothing has changed";
}

TEST_F(VirtioBalloonTest, ATargetBeyondTheDevicesCountersIsRefused) {
  ASSERT_TRUE(balloon_.set_target((uint64_t{1} << 44) - 1));
  EXPECT_EQ(balloon_.set_target(uint64_t{1} << 44).error().code(), Errc::kOutOfRange);
  EXPECT_EQ(balloon_.set_target(UINT64_MAX).error().code(), Errc::kOutOfRange);
  EXPECT_EQ(config<uint32_t>(kNumPages), UINT32_MAX);
}

TEST_F(VirtioBalloonTest, TheDriverSaysWhatItHasGiven) {
  write_config(kActual, 256);
  EXPECT_EQ(balloon_.actual_bytes(), 1U << 20);
  EXPECT_EQ(config<uint32_t>(kActual), 256U);
  write_config(kActual + 1, 0, 1);
  EXPECT_EQ(config<uint32_t>(kActual), 0U);
}

TEST_F(VirtioBalloonTest, NothingElseInConfigurationSpaceCanBeWritten) {
  ASSERT_TRUE(balloon_.set_target(1U << 20));
  write_config(kNumPages, UINT32_MAX);
  write_config(kConfigBytes - 1, UINT32_MAX);
  write_config(kConfigBytes, UINT32_MAX);
  balloon_.write_config(UINT64_MAX, std::vector<std::byte>(8, std::byte{0xff}));
  EXPECT_EQ(config<uint32_t>(kNumPages), 256U);
  EXPECT_EQ(config<uint32_t>(kActual), 0U);
  EXPECT_EQ(config<uint64_t>(8), 0U);
  EXPECT_EQ(config<uint64_t>(UINT64_MAX), 0U);
}

// --- Inflating and deflating ---

TEST_F(VirtioBalloonTest, GivenPagesAreDiscarded) {
  set_up();
  give(kInflateQueue, {kRamPage + 3, kRamPage + 1, kRamPage + 2, kRamPage + 7, kRamPage + 1});
  EXPECT_EQ(ram_.ranges, (std::vector{pages_from(kRamPage + 1, 3), pages_from(kRamPage + 7, 1)}));
  EXPECT_EQ(balloon_.counters().discarded_bytes, 4 * kPageBytes);
  EXPECT_EQ(rig_.driver(kInflateQueue).take_used()->len, 0U);
  EXPECT_EQ(rig_.transport().used_count(kInflateQueue), 1U);
}

TEST_F(VirtioBalloonTest, PagesOutsideRamAreIgnoredAndCounted) {
  set_up();
  const auto last = static_cast<uint32_t>(rig_.ram().range().last().value() / kPageBytes);
  give(kInflateQueue, {0, kRamPage - 1, last, last + 1, UINT32_MAX});
  EXPECT_EQ(ram_.ranges, (std::vector{pages_from(last, 1)}));
  EXPECT_EQ(balloon_.counters().ignored_pages, 4U);
  EXPECT_TRUE(rig_.driver(kInflateQueue).take_used());
  EXPECT_FALSE(rig_.transport().needs_reset());
}

TEST_F(VirtioBalloonTest, TakingPagesBackDiscardsNothing) {
  set_up();
  give(kDeflateQueue, {kRamPage, UINT32_MAX, 0});
  EXPECT_TRUE(ram_.ranges.empty());
  EXPECT_TRUE(rig_.driver(kDeflateQueue).take_used());
}

TEST_F(VirtioBalloonTest, BuffersWithoutWholeNumbersAreReturned) {
  set_up();
  GuestQueue& driver = rig_.driver(kInflateQueue);
  driver.chain().writable(64).submit();
  driver.chain().readable("abc").submit();
  driver.chain().piece(FakeRam::kBase.value(), 0, 0).submit();
  balloon_.notify(kInflateQueue);
  EXPECT_TRUE(driver.take_used());
  EXPECT_TRUE(driver.take_used());
  EXPECT_TRUE(driver.take_used());
  EXPECT_TRUE(ram_.ranges.empty());
}

TEST_F(VirtioBalloonTest, ALongListIsWorkedOffInRuns) {
  set_up();
  std::vector<uint32_t> pages(2 * VirtioBalloon::kPagesPerRun + 1);
  std::iota(pages.begin(), pages.end(), kRamPage);
  give(kInflateQueue, pages);
  EXPECT_EQ(ram_.bytes(), VirtioBalloon::kPagesPerRun * kPageBytes);
  balloon_.notify(kInflateQueue);
  EXPECT_EQ(ram_.bytes(), VirtioBalloon::kPagesPerRun * kPageBytes) << "the device waits for its next turn";
  EXPECT_FALSE(rig_.driver(kInflateQueue).take_used());
  rig_.run();
  EXPECT_EQ(ram_.bytes(), pages.size() * kPageBytes);
  EXPECT_TRUE(rig_.driver(kInflateQueue).take_used());
}

TEST_F(VirtioBalloonTest, AListInterruptedByAResetIsForgotten) {
  set_up();
  std::vector<uint32_t> pages(VirtioBalloon::kPagesPerRun + 1, kRamPage);
  give(kInflateQueue, pages);
  rig_.reset(balloon_);
  rig_.run();
  EXPECT_EQ(ram_.ranges.size(), 1U);
  set_up();
  give(kInflateQueue, {kRamPage + 5});
  EXPECT_EQ(ram_.ranges.back(), pages_from(kRamPage + 5, 1));
}

TEST_F(VirtioBalloonTest, AListTakenBackWithItsQueueIsForgotten) {
  set_up();
  give(kInflateQueue, std::vector<uint32_t>(VirtioBalloon::kPagesPerRun + 1, kRamPage));
  ASSERT_TRUE(balloon_.pause());
  rig_.queue(kInflateQueue).reset();
  rig_.resume(balloon_);
  GuestQueue again(rig_.ram(), VirtioRig::kQueueSize);
  ASSERT_TRUE(rig_.queue(kInflateQueue).configure(again.state(), kFeatures));
  const std::array pages{kRamPage + 5};
  again.chain().readable(std::as_bytes(std::span(pages))).submit();
  balloon_.notify(kInflateQueue);
  rig_.run();
  EXPECT_EQ(ram_.ranges.back(), pages_from(kRamPage + 5, 1));
}

TEST_F(VirtioBalloonTest, ADiscardThatFailsIsCounted) {
  set_up();
  ram_.is_broken = true;
  give(kInflateQueue, {kRamPage});
  EXPECT_EQ(balloon_.counters().failed_discards, 1U);
  EXPECT_EQ(balloon_.counters().discarded_bytes, 0U);
  EXPECT_TRUE(rig_.driver(kInflateQueue).take_used());
}

// --- Hosts with larger pages ---

class VirtioBalloonLargePageTest : public VirtioBalloonTest {
 protected:
  void give_to(VirtioBalloon& balloon, uint16_t queue, const std::vector<uint32_t>& pages) {
    rig_.driver(queue).chain().readable(std::as_bytes(std::span(pages))).submit();
    balloon.notify(queue);
  }
  VirtioBalloon large_{"balloon0", rig_.executor(), ram_, 16384};
};

TEST_F(VirtioBalloonLargePageTest, AHostPageIsPutTogetherOverSeveralBuffers) {
  rig_.activate(large_, kFeatures);
  give_to(large_, kInflateQueue, {kRamPage, kRamPage + 1});
  give_to(large_, kInflateQueue, {kRamPage + 2});
  EXPECT_TRUE(ram_.ranges.empty());
  give_to(large_, kInflateQueue, {kRamPage + 3});
  EXPECT_EQ(ram_.ranges, (std::vector{pages_from(kRamPage, 4)}));
}

TEST_F(VirtioBalloonLargePageTest, APageTakenBackKeepsItsHostPage) {
  rig_.activate(large_, kFeatures);
  give_to(large_, kInflateQueue, {kRamPage, kRamPage + 1, kRamPage + 2});
  give_to(large_, kDeflateQueue, {kRamPage});
  give_to(large_, kInflateQueue, {kRamPage + 3});
  EXPECT_TRUE(ram_.ranges.empty());
}

TEST_F(VirtioBalloonLargePageTest, ADriverThatNeedNotTellMustGiveAHostPageAtOnce) {
  rig_.activate(large_, kFeatures & ~kFMustTellHost);
  give_to(large_, kInflateQueue, {kRamPage, kRamPage + 1, kRamPage + 2});
  give_to(large_, kInflateQueue, {kRamPage + 3});
  EXPECT_TRUE(ram_.ranges.empty());
  give_to(large_, kInflateQueue, {kRamPage, kRamPage + 1, kRamPage + 2, kRamPage + 3});
  EXPECT_EQ(ram_.ranges.size(), 1U);
}

TEST_F(VirtioBalloonLargePageTest, AResetForgetsPartsOfHostPages) {
  rig_.activate(large_, kFeatures);
  give_to(large_, kInflateQueue, {kRamPage, kRamPage + 1, kRamPage + 2});
  rig_.reset(large_);
  rig_.activate(large_, kFeatures);
  give_to(large_, kInflateQueue, {kRamPage + 3});
  EXPECT_TRUE(ram_.ranges.empty());
}

// --- Free-page reporting ---

struct ReportingCase {
  const char* what;
  uint64_t features;
  uint16_t queue;
  bool is_reporting;
};
class VirtioBalloonReportingTest : public VirtioBalloonTest, public ::testing::WithParamInterface<ReportingCase> {};

TEST_P(VirtioBalloonReportingTest, TheQueueIsFoundWhereTheDriverPutIt) {
  set_up(GetParam().features);
  rig_.driver(GetParam().queue).chain().piece(FakeRam::kBase.value(), 1U << 20, kDescWrite).submit();
  balloon_.notify(GetParam().queue);
  EXPECT_EQ(ram_.bytes(), GetParam().is_reporting ? 1U << 20 : 0U);
}

INSTANTIATE_TEST_SUITE_P(Queues, VirtioBalloonReportingTest,
                         ::testing::Values(ReportingCase{"AsSpecified", kFeatures, kReportingQueue, true},
                                           ReportingCase{"CountedByLinux", kFeatures, kFreePageQueue, true},
                                           ReportingCase{"CountedByLinuxWithoutStats", kFPageReporting, kStatsQueue,
                                                         true},
                                           ReportingCase{"StatsAreNoReport", kFeatures, kStatsQueue, false},
                                           ReportingCase{"NotNegotiated", kFStatsVq, kReportingQueue, false},
                                           ReportingCase{"NotNegotiatedEither", kFStatsVq, kFreePageQueue, false}),
                         [](const auto& row) { return std::string(row.param.what); });

TEST_F(VirtioBalloonTest, ReportedPiecesAreDiscarded) {
  set_up();
  const uint64_t base = FakeRam::kBase.value();
  rig_.driver(kReportingQueue)
      .chain()
      .piece(base + (2U << 20), 2U << 20, kDescWrite)
      .piece(base + (8U << 20), 1U << 20, kDescWrite)
      .submit();
  balloon_.notify(kReportingQueue);
  EXPECT_EQ(ram_.ranges,
            (std::vector{GuestRange::fixed(0x4020'0000, 0x20'0000), GuestRange::fixed(0x4080'0000, 0x10'0000)}));
  EXPECT_TRUE(rig_.driver(kReportingQueue).take_used());
}

TEST_F(VirtioBalloonTest, ReadablePiecesOfAReportAreKept) {
  set_up();
  rig_.driver(kReportingQueue).chain().readable("keep").submit();
  balloon_.notify(kReportingQueue);
  EXPECT_TRUE(ram_.ranges.empty());
  EXPECT_TRUE(rig_.driver(kReportingQueue).take_used());
}

TEST_F(VirtioBalloonTest, ALongReportIsWorkedOffInRuns) {
  set_up();
  auto builder = rig_.driver(kReportingQueue).chain();
  for (unsigned count = 0; count < 10; ++count) {  // the same 15 MiB, as a hostile driver may
    builder.piece(FakeRam::kBase.value() + (1U << 20), 15U << 20, kDescWrite);
  }
  builder.submit();
  balloon_.notify(kReportingQueue);
  EXPECT_EQ(ram_.bytes(), VirtioBalloon::kReportBytesPerRun);
  EXPECT_FALSE(rig_.driver(kReportingQueue).take_used());
  rig_.run();
  EXPECT_EQ(ram_.bytes(), 150U << 20);
  EXPECT_TRUE(rig_.driver(kReportingQueue).take_used());
}

// --- Statistics ---

TEST_F(VirtioBalloonTest, StatisticsAreKept) {
  set_up();
  auto bytes = entry(BalloonStats::kFree, 1000);
  const auto total = entry(BalloonStats::kTotal, UINT64_MAX);
  bytes.insert(bytes.end(), total.begin(), total.end());
  give_stats(bytes);
  EXPECT_EQ(balloon_.stats().values.at(BalloonStats::kFree), 1000U);
  EXPECT_EQ(balloon_.stats().values.at(BalloonStats::kTotal), UINT64_MAX);
  EXPECT_FALSE(balloon_.stats().values.at(BalloonStats::kSwapIn));
  EXPECT_EQ(balloon_.stats().update_count, 1U);
  EXPECT_FALSE(rig_.driver(kStatsQueue).take_used()) << "the buffer is kept for the next request";
}

TEST_F(VirtioBalloonTest, ARequestReturnsTheBufferAndTakesTheAnswer) {
  set_up();
  give_stats(entry(BalloonStats::kFree, 1));
  ASSERT_TRUE(balloon_.request_stats());
  EXPECT_TRUE(rig_.driver(kStatsQueue).take_used());
  EXPECT_EQ(rig_.transport().used_count(kStatsQueue), 1U);
  EXPECT_FALSE(balloon_.request_stats()) << "the guest has not answered yet";
  give_stats(entry(BalloonStats::kFree, 2));
  EXPECT_EQ(balloon_.stats().values.at(BalloonStats::kFree), 2U);
  EXPECT_EQ(balloon_.stats().update_count, 2U);
}

TEST_F(VirtioBalloonTest, ARequestAsksForADoorbell) {
  set_up(kFeatures | kVirtioFEventIdx);
  give_stats(entry(BalloonStats::kFree, 1));
  ASSERT_TRUE(balloon_.request_stats());
  EXPECT_EQ(rig_.driver(kStatsQueue).avail_event(), 1U);
}

TEST_F(VirtioBalloonTest, StatisticsThatCannotBeReadAreSkipped) {
  set_up();
  auto bytes = entry(UINT16_MAX, 7);
  const auto unknown = entry(BalloonStats::kTagCount, 7);
  bytes.insert(bytes.end(), unknown.begin(), unknown.end());
  bytes.push_back(std::byte{4});  // part of an entry
  give_stats(bytes);
  for (const auto& value : balloon_.stats().values) {
    EXPECT_FALSE(value);
  }
}

TEST_F(VirtioBalloonTest, OfManyStatisticsBuffersOneIsTaken) {
  set_up();
  give_stats(entry(BalloonStats::kFree, 1));
  give_stats(entry(BalloonStats::kFree, 2));
  rig_.driver(kStatsQueue).chain().piece(FakeRam::kBase.value(), 8U << 20, 0).submit();
  balloon_.notify(kStatsQueue);
  EXPECT_EQ(balloon_.stats().values.at(BalloonStats::kFree), 1U);
  EXPECT_EQ(rig_.queue(kStatsQueue).in_flight(), 1U);
  EXPECT_TRUE(balloon_.request_stats());
  EXPECT_EQ(balloon_.stats().values.at(BalloonStats::kFree), 2U);
  EXPECT_TRUE(balloon_.request_stats());
  EXPECT_EQ(balloon_.stats().update_count, 3U);
}

TEST_F(VirtioBalloonTest, WithoutABufferThereIsNobodyToAsk) {
  EXPECT_FALSE(balloon_.request_stats());
  set_up();
  EXPECT_FALSE(balloon_.request_stats());
  give_stats({});
  rig_.reset(balloon_);
  EXPECT_FALSE(balloon_.request_stats());
}

TEST_F(VirtioBalloonTest, DuringAPauseNoBufferIsInFlight) {
  set_up();
  give_stats(entry(BalloonStats::kFree, 1));
  ASSERT_TRUE(balloon_.pause());
  EXPECT_EQ(rig_.queue(kStatsQueue).in_flight(), 0U);
  EXPECT_FALSE(balloon_.request_stats());
  rig_.resume(balloon_);
  EXPECT_TRUE(balloon_.request_stats());
}

// --- Broken rings, and doorbells out of place ---

class VirtioBalloonQueueTest : public VirtioBalloonTest, public ::testing::WithParamInterface<uint16_t> {};

TEST_P(VirtioBalloonQueueTest, ABrokenRingNeedsAResetAndTheDeviceWorksAfterIt) {
  set_up();
  give_stats(entry(BalloonStats::kFree, 1));
  if (GetParam() == kStatsQueue) {
    ASSERT_TRUE(balloon_.request_stats());
  }
  rig_.break_ring(GetParam());
  balloon_.notify(GetParam());
  EXPECT_EQ(rig_.transport().needs_reset(), text_of(RingFault::kDescriptor));
  EXPECT_FALSE(balloon_.request_stats());
  rig_.reset(balloon_);
  set_up();
  give(kInflateQueue, {kRamPage});
  EXPECT_EQ(ram_.ranges.size(), 1U);
}

TEST_P(VirtioBalloonQueueTest, DoorbellsOutOfPlaceAreIgnored) {
  balloon_.notify(GetParam());
  rig_.activate(balloon_, kFeatures, {GetParam()});
  balloon_.notify(GetParam());
  ASSERT_TRUE(balloon_.pause());
  balloon_.notify(GetParam());
  rig_.run();
  EXPECT_FALSE(rig_.transport().needs_reset());
  EXPECT_TRUE(ram_.ranges.empty());
}

INSTANTIATE_TEST_SUITE_P(Queues, VirtioBalloonQueueTest,
                         ::testing::Values(kInflateQueue, kDeflateQueue, kStatsQueue, kFreePageQueue, kReportingQueue),
                         [](const auto& row) { return "Queue" + std::to_string(row.param); });

TEST_F(VirtioBalloonTest, QueuesThatDoNotExistAreIgnored) {
  set_up();
  balloon_.notify(kQueueCount);
  balloon_.notify(UINT16_MAX);
  EXPECT_FALSE(rig_.transport().needs_reset());
}

// --- Life cycle ---

TEST_F(VirtioBalloonTest, PausesBeforeADriverIsThere) {
  EXPECT_TRUE(balloon_.pause());
  EXPECT_TRUE(balloon_.pause());
  EXPECT_TRUE(balloon_.resume());
  EXPECT_TRUE(balloon_.resume());
}

TEST_F(VirtioBalloonTest, PagesGivenDuringAPauseAreDiscardedAfterIt) {
  set_up();
  ASSERT_TRUE(balloon_.pause());
  give(kInflateQueue, {kRamPage});
  EXPECT_TRUE(ram_.ranges.empty());
  rig_.resume(balloon_);
  EXPECT_EQ(ram_.ranges.size(), 1U);
}

TEST_F(VirtioBalloonTest, AResetKeepsTheTargetAndEmptiesTheBalloon) {
  ASSERT_TRUE(balloon_.set_target(1U << 20));
  write_config(kActual, 256);
  ASSERT_TRUE(balloon_.reset());
  EXPECT_EQ(balloon_.target_bytes(), 1U << 20);
  EXPECT_EQ(balloon_.actual_bytes(), 0U);
}

TEST_F(VirtioBalloonTest, TargetAndActualAreSaved) {
  ASSERT_TRUE(balloon_.set_target(8U << 20));
  write_config(kActual, 256);
  const StateRecord record = balloon_.save().value();
  VirtioBalloon other("balloon0", rig_.executor(), ram_, 4096);
  ASSERT_TRUE(other.restore(record));
  EXPECT_EQ(other.target_bytes(), 8U << 20);
  EXPECT_EQ(other.actual_bytes(), 1U << 20);
  EXPECT_EQ(other.save().value(), record);
}

TEST_F(VirtioBalloonTest, AnInterruptedListIsWorkedOffAgainAfterRestore) {
  set_up();
  std::vector<uint32_t> pages(VirtioBalloon::kPagesPerRun + 1);
  std::iota(pages.begin(), pages.end(), kRamPage);
  give(kInflateQueue, pages);
  ASSERT_TRUE(balloon_.pause());
  EXPECT_EQ(rig_.queue(kInflateQueue).in_flight(), 0U);
  VirtioBalloon other("balloon0", rig_.executor(), ram_, 4096);
  ASSERT_TRUE(other.pause());
  ASSERT_TRUE(other.restore(balloon_.save().value()));
  ram_.ranges.clear();
  rig_.reattach(other);
  rig_.resume(other);
  rig_.run();
  EXPECT_EQ(ram_.bytes(), pages.size() * kPageBytes);
}

TEST_F(VirtioBalloonTest, AnotherDevicesStateIsRefused) {
  EXPECT_EQ(balloon_.restore(StateRecord::none("virtio_balloon")).error().code(), Errc::kCorrupt);
  EXPECT_EQ(balloon_.restore(StateRecord::none("virtio_rng")).error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace tandem::devices
