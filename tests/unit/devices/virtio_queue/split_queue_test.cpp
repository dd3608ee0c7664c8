// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_queue/split_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/fakes/fake_ram.hpp"
#include "tests/fakes/guest_queue.hpp"

namespace tandem::devices {
namespace {

constexpr uint16_t kSize = 8;
constexpr uint64_t kAllFeatures = kVirtioFIndirectDesc | kVirtioFEventIdx;

std::string text_in(const DescriptorChain& chain, size_t size_bytes, uint64_t offset = 0) {
  std::string text(size_bytes, '\0');
  text.resize(chain.read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

class SplitQueueTest : public ::testing::Test {
 protected:
  void set_up(uint64_t features) { ASSERT_TRUE(queue_.configure(driver_.state(), features)); }

  DescriptorChain pop_one() {
    auto popped = queue_.pop();
    EXPECT_TRUE(popped);
    return std::move(popped.value().value());
  }
  void expect_fault(RingFault fault) {
    const auto popped = queue_.pop();
    ASSERT_FALSE(popped);
    EXPECT_EQ(popped.error(), fault) << text_of(popped.error());
  }
  void expect_empty() {
    const auto popped = queue_.pop();
    ASSERT_TRUE(popped);
    EXPECT_FALSE(*popped);
  }
  /// Makes one buffer available that uses no RAM, and has it returned.
  void round_trip() {
    driver_.chain().piece(FakeRam::kBase.value(), 4, 0).submit();
    queue_.push(pop_one(), 0);
    ASSERT_TRUE(driver_.take_used());
  }

  FakeRam ram_;
  GuestQueue driver_{ram_, kSize};
  SplitQueue queue_{ram_.memory(), 256};
};

// --- Buffers ---

TEST_F(SplitQueueTest, AnEmptyRingHasNoBuffer) {
  set_up(0);
  expect_empty();
}

TEST_F(SplitQueueTest, AQueueThatIsNotSetUpHasNoBuffer) {
  expect_empty();
  EXPECT_FALSE(queue_.enable_notifications());
  EXPECT_FALSE(queue_.should_notify());
}

TEST_F(SplitQueueTest, AChainIsSeenAsReadableThenWritableBytes) {
  set_up(0);
  const auto request = driver_.chain().readable("head").readable("er").writable(3).writable(5).submit();
  DescriptorChain chain = pop_one();
  EXPECT_EQ(chain.head(), request.head);
  EXPECT_EQ(chain.readable_size(), 6U);
  EXPECT_EQ(chain.writable_size(), 8U);
  EXPECT_EQ(text_in(chain, 100), "header");
  EXPECT_EQ(text_in(chain, 3, 3), "der");
  EXPECT_EQ(text_in(chain, 1, 6), "");
}

TEST_F(SplitQueueTest, WritesAreSpreadOverThePieces) {
  set_up(0);
  const auto request = driver_.chain().writable(3).writable(5).submit();
  DescriptorChain chain = pop_one();
  EXPECT_EQ(chain.write(2, std::as_bytes(std::span("abcdefghi", 9))), 6U);
  EXPECT_EQ(ram_.read(request.writable[0].base(), 3)[2], std::byte{'a'});
  EXPECT_EQ(ram_.read(request.writable[1].base(), 5)[4], std::byte{'f'});
}

TEST_F(SplitQueueTest, AnIndirectTableIsFollowed) {
  set_up(kVirtioFIndirectDesc);
  driver_.chain().indirect().readable("ab").readable("cd").writable(7).submit();
  const DescriptorChain chain = pop_one();
  EXPECT_EQ(text_in(chain, 9), "abcd");
  EXPECT_EQ(chain.writable_size(), 7U);
}

TEST_F(SplitQueueTest, AnIndirectTableMayEndADirectChain) {
  set_up(kVirtioFIndirectDesc);
  driver_.chain().readable("ab").indirect().readable("cd").submit();
  EXPECT_EQ(text_in(pop_one(), 9), "abcd");
}

TEST_F(SplitQueueTest, AnIndirectTableMayBeLongerThanTheQueue) {
  set_up(kVirtioFIndirectDesc);
  auto builder = driver_.chain().indirect();
  for (unsigned count = 0; count < kMaxQueueSize; ++count) {
    builder.piece(FakeRam::kBase.value(), 1, 0);
  }
  builder.submit();
  EXPECT_EQ(pop_one().readable_size(), kMaxQueueSize);
}

TEST_F(SplitQueueTest, AnIndirectTableNeedsNoAlignment) {
  set_up(kVirtioFIndirectDesc);
  const GuestQueue::Descriptor inner{.addr = FakeRam::kBase.value(), .len = 5, .flags = kDescWrite, .next = 0};
  const GuestAddr table(ram_.allocate(32).value() + 1);
  ram_.write(table, std::as_bytes(std::span(&inner, 1)));
  driver_.set_descriptor(0, {.addr = table.value(), .len = 16, .flags = kDescIndirect, .next = 0});
  driver_.offer(0);
  EXPECT_EQ(pop_one().writable_size(), 5U);
}

TEST_F(SplitQueueTest, EmptyPiecesAreSkipped) {
  set_up(0);
  driver_.chain().piece(0, 0, 0).readable("x").submit();
  const DescriptorChain chain = pop_one();
  EXPECT_EQ(chain.readable().size(), 1U);
}

TEST_F(SplitQueueTest, AFullRingIsPoppedInOrder) {
  set_up(0);
  for (unsigned count = 0; count < kSize; ++count) {
    driver_.chain().readable(count).submit();
  }
  for (unsigned count = 0; count < kSize; ++count) {
    unsigned value = ~0U;
    ASSERT_EQ(pop_one().read(0, std::as_writable_bytes(std::span(&value, 1))), sizeof value);
    EXPECT_EQ(value, count);
  }
  EXPECT_EQ(queue_.in_flight(), kSize);
  expect_empty();
}

TEST_F(SplitQueueTest, ABufferMayEndWithRam) {
  set_up(0);
  driver_.chain().piece(ram_.end_minus(16).value(), 16, kDescWrite).submit();
  EXPECT_EQ(pop_one().writable_size(), 16U);
}

TEST_F(SplitQueueTest, ReturnedBuffersReachTheDriver) {
  set_up(0);
  const auto first = driver_.chain().writable(4).submit();
  const auto second = driver_.chain().writable(4).submit();
  DescriptorChain first_chain = pop_one();
  queue_.push(pop_one(), 3);
  queue_.push(std::move(first_chain), 4);
  const auto used = driver_.take_used();
  ASSERT_TRUE(used);
  EXPECT_EQ(used->head, second.head);
  EXPECT_EQ(used->len, 3U);
  EXPECT_EQ(driver_.take_used()->head, first.head);
  EXPECT_FALSE(driver_.take_used());
  EXPECT_EQ(queue_.in_flight(), 0U);
}

TEST_F(SplitQueueTest, BuffersReturnedTogetherReachTheDriverInOrder) {
  set_up(0);
  const auto first = driver_.chain().writable(4).submit();
  const auto second = driver_.chain().writable(4).submit();
  std::vector<SplitQueue::Filled> buffers;
  buffers.push_back({.chain = pop_one(), .written_bytes = 4});
  buffers.push_back({.chain = pop_one(), .written_bytes = 1});
  queue_.push_together(buffers);
  EXPECT_EQ(queue_.in_flight(), 0U);
  const auto used = {driver_.take_used(), driver_.take_used()};
  EXPECT_EQ(used.begin()[0]->head, first.head);
  EXPECT_EQ(used.begin()[0]->len, 4U);
  EXPECT_EQ(used.begin()[1]->head, second.head);
  EXPECT_EQ(used.begin()[1]->len, 1U);
}

TEST_F(SplitQueueTest, AQueueOfOneDescriptorWorks) {
  GuestQueue driver(ram_, 1);
  ASSERT_TRUE(queue_.configure(driver.state(), 0));
  for (unsigned count = 0; count < 3; ++count) {
    const auto request = driver.chain().piece(FakeRam::kBase.value(), 4, kDescWrite).submit();
    queue_.push(pop_one(), count);
    const auto used = driver.take_used();
    ASSERT_TRUE(used);
    EXPECT_EQ(used->head, request.head);
    EXPECT_EQ(used->len, count);
  }
}

TEST_F(SplitQueueTest, IndexesWrapAt65536) {
  set_up(kAllFeatures);
  driver_.set_used_event(5);
  unsigned notified = 0;
  for (unsigned count = 0; count < 70000; ++count) {
    round_trip();
    notified += queue_.should_notify() ? 1 : 0;
  }
  EXPECT_EQ(queue_.state().next_avail, 70000 % 65536);
  EXPECT_EQ(driver_.used_index(), 70000 % 65536);
  EXPECT_EQ(notified, 3U);  // the first push, and when the index passes 5: twice
}

// --- Putting back ---

TEST_F(SplitQueueTest, APutBackBufferIsPoppedAgain) {
  set_up(0);
  driver_.chain().readable("a").submit();
  driver_.chain().readable("b").submit();
  DescriptorChain first = pop_one();
  DescriptorChain second = pop_one();
  queue_.undo_pop(std::move(second));
  queue_.undo_pop(std::move(first));
  EXPECT_EQ(queue_.in_flight(), 0U);
  EXPECT_EQ(text_in(pop_one(), 1), "a");
  EXPECT_EQ(text_in(pop_one(), 1), "b");
}

TEST_F(SplitQueueTest, WaitingForMoreThanThePutBackBuffersDoesNotSpin) {
  set_up(kVirtioFEventIdx);
  driver_.chain().readable("a").submit();
  queue_.undo_pop(pop_one());
  EXPECT_FALSE(queue_.enable_notifications());
  EXPECT_EQ(driver_.avail_event(), 1U);  // the driver rings when it adds the next one
  driver_.chain().readable("b").submit();
  EXPECT_TRUE(queue_.enable_notifications());
  EXPECT_EQ(text_in(pop_one(), 1), "a");
}

// --- Notifications ---

TEST_F(SplitQueueTest, TheFirstPushAfterSetUpInterrupts) {
  set_up(0);
  driver_.set_avail_flags(1);
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  round_trip();
  EXPECT_FALSE(queue_.should_notify());
}

TEST_F(SplitQueueTest, WithoutAPushThereIsNoInterrupt) {
  set_up(0);
  EXPECT_FALSE(queue_.should_notify());
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  EXPECT_FALSE(queue_.should_notify());
}

TEST_F(SplitQueueTest, TheDriversFlagSuppressesInterrupts) {
  set_up(0);
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  driver_.set_avail_flags(1);
  round_trip();
  EXPECT_FALSE(queue_.should_notify());
}

TEST_F(SplitQueueTest, TheEventIndexChoosesThePushThatInterrupts) {
  set_up(kVirtioFEventIdx);
  driver_.set_used_event(2);
  round_trip();
  EXPECT_TRUE(queue_.should_notify());  // the first one always
  round_trip();
  EXPECT_FALSE(queue_.should_notify());
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  round_trip();
  EXPECT_FALSE(queue_.should_notify());
}

TEST_F(SplitQueueTest, ABatchThatPassesTheEventIndexInterrupts) {
  set_up(kVirtioFEventIdx);
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  driver_.set_used_event(3);
  for (unsigned count = 0; count < 5; ++count) {
    round_trip();
  }
  EXPECT_TRUE(queue_.should_notify());
}

TEST_F(SplitQueueTest, WithTheEventIndexTheFlagIsIgnored) {
  set_up(kVirtioFEventIdx);
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
  driver_.set_avail_flags(1);
  driver_.set_used_event(1);
  round_trip();
  EXPECT_TRUE(queue_.should_notify());
}

TEST_F(SplitQueueTest, DoorbellsAreTurnedOffAndOnByTheFlag) {
  set_up(0);
  queue_.disable_notifications();
  EXPECT_EQ(driver_.used_flags(), 1U);
  EXPECT_FALSE(queue_.enable_notifications());
  EXPECT_EQ(driver_.used_flags(), 0U);
}

TEST_F(SplitQueueTest, DoorbellsAreAskedForByTheEventIndex) {
  set_up(kVirtioFEventIdx);
  round_trip();
  queue_.disable_notifications();
  EXPECT_EQ(driver_.used_flags(), 0U);
  EXPECT_EQ(driver_.avail_event(), 0U);
  EXPECT_FALSE(queue_.enable_notifications());
  EXPECT_EQ(driver_.avail_event(), 1U);
}

TEST_F(SplitQueueTest, ABufferThatCameBeforeDoorbellsWereOnIsReported) {
  set_up(0);
  expect_empty();
  driver_.chain().readable("x").submit();
  EXPECT_TRUE(queue_.enable_notifications());
}

// --- Set-up and state ---

TEST_F(SplitQueueTest, FindingTheRingEmptyTurnsDoorbellsOn) {
  set_up(0);
  queue_.disable_notifications();
  driver_.chain().readable("x").submit();
  auto chain = queue_.pop_or_rearm();
  ASSERT_TRUE(chain && *chain);
  EXPECT_EQ(driver_.used_flags(), 1U);
  queue_.push(*std::move(*chain), 0);
  chain = queue_.pop_or_rearm();
  ASSERT_TRUE(chain);
  EXPECT_FALSE(*chain);
  EXPECT_EQ(driver_.used_flags(), 0U);
}

TEST_F(SplitQueueTest, ARestoredQueueGoesOnWhereItWas) {
  set_up(0);
  round_trip();
  driver_.chain().readable("next").submit();
  const SplitQueue::State state = queue_.state();
  SplitQueue other(ram_.memory(), 256);
  ASSERT_TRUE(other.configure(state, 0));
  const auto popped = other.pop();
  ASSERT_TRUE(popped.has_value() && popped->has_value());
  EXPECT_EQ(text_in(**popped, 4), "next");
  EXPECT_EQ(other.state().next_used, 1U);
}

TEST_F(SplitQueueTest, ResetMakesAFreshQueue) {
  set_up(0);
  driver_.chain().readable("x").submit();
  queue_.reset();
  EXPECT_FALSE(queue_.is_ready());
  EXPECT_EQ(queue_.state(), SplitQueue::State());
  expect_empty();
}

TEST_F(SplitQueueTest, RingsMayEndWithRam) {
  SplitQueue::State state = driver_.state();
  state.device_addr = ram_.end_minus(72).value();  // 6 + 8·8 bytes, and 2 for alignment
  EXPECT_TRUE(queue_.configure(state, kAllFeatures));
  state.device_addr += 4;
  const auto done = queue_.configure(state, kAllFeatures);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(), RingFault::kAddress);
  EXPECT_FALSE(queue_.is_ready());
}

TEST_F(SplitQueueTest, ABufferFromBeforeAResetIsDropped) {
  set_up(0);
  driver_.chain().readable("x").submit();
  driver_.chain().readable("y").submit();
  DescriptorChain first = pop_one();
  DescriptorChain second = pop_one();
  set_up(0);
  queue_.push(std::move(second), 1);
  queue_.undo_pop(std::move(first));
  EXPECT_FALSE(driver_.take_used());
  EXPECT_EQ(queue_.state(), driver_.state());
}

TEST_F(SplitQueueTest, ABufferFromBeforeTheQueueWasShutDownIsDropped) {
  set_up(0);
  driver_.chain().readable("x").submit();
  DescriptorChain chain = pop_one();
  queue_.reset();
  queue_.push(std::move(chain), 0);
  EXPECT_FALSE(driver_.take_used());
}

// --- Log of writes ---

/// A log of all RAM, in pages of 4 KiB; each ring has one for itself.
class SplitQueueLogTest : public SplitQueueTest {
 protected:
  static constexpr size_t kPage = 4096;
  SplitQueueLogTest() {
    state_.desc_addr = ram_.allocate(kPage, kPage).value();
    state_.driver_addr = ram_.allocate(kPage, kPage).value();
    state_.device_addr = ram_.allocate(kPage, kPage).value();
    EXPECT_TRUE(queue_.configure(state_, kAllFeatures));
  }
  bool is_marked(GuestAddr addr) const { return log_.is_marked(ram_.range().offset_of(addr) / kPage); }

  SplitQueue::State state_{.size = kSize, .ready = true};
  DirtyBitmap log_{ram_.range(), kPage};
};

TEST_F(SplitQueueLogTest, WhatADeviceWroteIsMarkedWhenItsBufferIsReturned) {
  GuestQueue driver(ram_, state_);
  const GuestAddr first = ram_.allocate(2 * kPage, kPage);
  const GuestAddr second = ram_.allocate(kPage, kPage);
  const GuestAddr request = ram_.allocate(kPage, kPage);
  driver.chain()
      .piece(request.value(), 16, 0)
      .piece(first.value() + kPage - 8, 16, kDescWrite)
      .piece(second.value(), 1, kDescWrite)
      .submit();
  ram_.log_writes(&log_);

  DescriptorChain chain = pop_one();
  ASSERT_EQ(chain.write(0, std::array<std::byte, 16>{}), 16U);
  EXPECT_EQ(log_.count(), 0U);
  queue_.push(std::move(chain), 16);

  EXPECT_TRUE(is_marked(first));
  EXPECT_TRUE(is_marked(*first.plus(kPage)));
  EXPECT_TRUE(is_marked(second));
  EXPECT_TRUE(is_marked(GuestAddr(state_.device_addr)));
  EXPECT_EQ(log_.count(), 4U);
}

TEST_F(SplitQueueLogTest, BuffersReturnedTogetherAreAllMarked) {
  GuestQueue driver(ram_, state_);
  std::vector<GuestAddr> places;
  std::vector<SplitQueue::Filled> buffers;
  for (int count = 0; count < 2; ++count) {
    places.push_back(ram_.allocate(kPage, kPage));
    driver.chain().piece(places.back().value(), kPage, kDescWrite).submit();
    buffers.push_back({pop_one(), kPage});
  }
  ram_.log_writes(&log_);
  queue_.push_together(buffers);
  EXPECT_TRUE(is_marked(places[0]));
  EXPECT_TRUE(is_marked(places[1]));
  EXPECT_EQ(log_.count(), 3U);
}

TEST_F(SplitQueueLogTest, AskingForDoorbellsMarksTheUsedRing) {
  ram_.log_writes(&log_);
  ASSERT_FALSE(queue_.enable_notifications());
  EXPECT_TRUE(is_marked(GuestAddr(state_.device_addr)));
  log_.clear();
  ASSERT_TRUE(queue_.configure(state_, 0));
  queue_.disable_notifications();
  EXPECT_TRUE(is_marked(GuestAddr(state_.device_addr)));
  EXPECT_EQ(log_.count(), 1U);
}

TEST_F(SplitQueueLogTest, ABufferPutBackIsNotMarked) {
  GuestQueue driver(ram_, state_);
  driver.chain().piece(ram_.allocate(kPage, kPage).value(), kPage, kDescWrite).submit();
  ram_.log_writes(&log_);
  queue_.undo_pop(pop_one());
  EXPECT_EQ(log_.count(), 0U);
}

TEST_F(SplitQueueLogTest, NothingIsMarkedWithoutALog) {
  GuestQueue driver(ram_, state_);
  driver.chain().piece(ram_.allocate(kPage, kPage).value(), kPage, kDescWrite).submit();
  ram_.log_writes(&log_);
  ram_.log_writes(nullptr);
  queue_.push(pop_one(), kPage);
  EXPECT_EQ(log_.count(), 0U);
}

struct BadSetUp {
  const char* name;
  void (*change)(SplitQueue::State&);
  RingFault fault;
};

class SplitQueueSetUpTest : public SplitQueueTest, public ::testing::WithParamInterface<BadSetUp> {};

TEST_P(SplitQueueSetUpTest, IsRefused) {
  SplitQueue::State state = driver_.state();
  GetParam().change(state);
  const auto done = queue_.configure(state, kAllFeatures);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(), GetParam().fault);
  EXPECT_FALSE(queue_.is_ready());
}

using State = SplitQueue::State;
INSTANTIATE_TEST_SUITE_P(
    All, SplitQueueSetUpTest,
    ::testing::Values(BadSetUp{"SizeZero", [](State& s) { s.size = 0; }, RingFault::kDescriptor},
                      BadSetUp{"SizeNoPowerOfTwo", [](State& s) { s.size = 6; }, RingFault::kDescriptor},
                      BadSetUp{"SizeAboveMaximum", [](State& s) { s.size = 512; }, RingFault::kDescriptor},
                      BadSetUp{"TableMisaligned", [](State& s) { s.desc_addr += 8; }, RingFault::kAddress},
                      BadSetUp{"AvailMisaligned", [](State& s) { s.driver_addr += 1; }, RingFault::kAddress},
                      BadSetUp{"UsedMisaligned", [](State& s) { s.device_addr += 2; }, RingFault::kAddress},
                      BadSetUp{"TableBelowRam", [](State& s) { s.desc_addr = 0; }, RingFault::kAddress},
                      BadSetUp{"AvailBeyondRam", [](State& s) { s.driver_addr = 0x8000'0000; }, RingFault::kAddress},
                      BadSetUp{"UsedWraps", [](State& s) { s.device_addr = UINT64_MAX - 3; }, RingFault::kAddress},
                      BadSetUp{"MoreInFlightThanSize", [](State& s) { s.next_avail = kSize + 1; },
                               RingFault::kAvailIndex},
                      BadSetUp{"UsedAheadOfAvail", [](State& s) { s.next_used = 1; }, RingFault::kAvailIndex}),
    [](const auto& row) { return std::string(row.param.name); });

// --- Hostile rings ---

TEST_F(SplitQueueTest, AnAvailIndexThatJumpsTooFarIsAFault) {
  set_up(0);
  driver_.set_avail_index(kSize + 1);
  expect_fault(RingFault::kAvailIndex);
  expect_fault(RingFault::kAvailIndex);
}

TEST_F(SplitQueueTest, AnAvailIndexThatGoesBackIsAFault) {
  set_up(0);
  driver_.chain().readable("a").submit();
  driver_.chain().readable("b").submit();
  pop_one();
  pop_one();
  driver_.set_avail_index(1);
  expect_fault(RingFault::kAvailIndex);
}

TEST_F(SplitQueueTest, ABufferOfferedAgainWhileInFlightCannotExceedTheQueue) {
  set_up(0);
  const auto request = driver_.chain().readable("a").submit();
  std::vector<DescriptorChain> held;
  held.push_back(pop_one());
  for (unsigned count = 1; count < kSize; ++count) {
    driver_.offer(request.head);
    held.push_back(pop_one());
  }
  driver_.offer(request.head);
  expect_fault(RingFault::kAvailIndex);
}

TEST_F(SplitQueueTest, AHeadOutsideTheTableIsAFault) {
  set_up(0);
  driver_.offer(kSize);
  expect_fault(RingFault::kDescriptor);
}

TEST_F(SplitQueueTest, ANextOutsideTheTableIsAFault) {
  set_up(0);
  driver_.set_descriptor(0, {.addr = FakeRam::kBase.value(), .len = 1, .flags = kDescNext, .next = 0xffff});
  driver_.offer(0);
  expect_fault(RingFault::kDescriptor);
}

TEST_F(SplitQueueTest, ALoopIsAFault) {
  set_up(0);
  driver_.set_descriptor(0, {.addr = FakeRam::kBase.value(), .len = 1, .flags = kDescNext, .next = 1});
  driver_.set_descriptor(1, {.addr = FakeRam::kBase.value(), .len = 1, .flags = kDescNext, .next = 0});
  driver_.offer(0);
  expect_fault(RingFault::kChainLength);
}

TEST_F(SplitQueueTest, ADescriptorThatIsItsOwnNextIsAFault) {
  set_up(0);
  driver_.set_descriptor(3, {.addr = FakeRam::kBase.value(), .len = 0, .flags = kDescNext, .next = 3});
  driver_.offer(3);
  expect_fault(RingFault::kChainLength);
}

TEST_F(SplitQueueTest, AReadablePieceAfterAWritableOneIsAFault) {
  set_up(0);
  driver_.chain().writable(4).readable("x").submit();
  expect_fault(RingFault::kOrder);
}

TEST_F(SplitQueueTest, ABufferOf4GiBIsTakenAndALongerOneIsAFault) {
  constexpr uint32_t kPiece = 1U << 29;
  FakeRam ram(kPiece);
  SplitQueue queue(ram.memory(), 256);
  GuestQueue driver(ram, 16);
  ASSERT_TRUE(queue.configure(driver.state(), 0));
  auto builder = driver.chain();
  for (unsigned count = 0; count < 8; ++count) {
    builder.piece(FakeRam::kBase.value(), kPiece, kDescWrite);
  }
  builder.submit();
  auto popped = queue.pop();
  ASSERT_TRUE(popped.has_value() && popped->has_value());
  EXPECT_EQ((*popped)->writable_size(), uint64_t{1} << 32);
  queue.push(std::move(**popped), UINT32_MAX);
  ASSERT_TRUE(driver.take_used());
  builder.piece(FakeRam::kBase.value(), 1, kDescWrite).submit();
  const auto fault = queue.pop();
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error(), RingFault::kTooLong);
}

struct BadPiece {
  const char* name;
  uint64_t addr;
  uint32_t len;
};

class SplitQueuePieceTest : public SplitQueueTest, public ::testing::WithParamInterface<BadPiece> {};

TEST_P(SplitQueuePieceTest, OutsideRamIsAFaultForReading) {
  set_up(0);
  driver_.chain().piece(GetParam().addr, GetParam().len, 0).submit();
  expect_fault(RingFault::kAddress);
}

TEST_P(SplitQueuePieceTest, OutsideRamIsAFaultForWriting) {
  set_up(0);
  driver_.set_descriptor(0, {.addr = GetParam().addr, .len = GetParam().len, .flags = kDescWrite, .next = 0});
  driver_.offer(0);
  expect_fault(RingFault::kAddress);
}

INSTANTIATE_TEST_SUITE_P(All, SplitQueuePieceTest,
                         ::testing::Values(BadPiece{"AtZero", 0, 1}, BadPiece{"BelowRam", 0x3fff'ffff, 1},
                                           BadPiece{"IntoRam", 0x3fff'ffff, 2}, BadPiece{"OutOfRam", 0x400f'ffff, 2},
                                           BadPiece{"BehindRam", 0x4010'0000, 1},
                                           BadPiece{"LongerThanRam", 0x4000'0000, UINT32_MAX},
                                           BadPiece{"Wraps", UINT64_MAX, 2}),
                         [](const auto& row) { return std::string(row.param.name); });

// --- Hostile indirect tables ---

class SplitQueueIndirectTest : public SplitQueueTest {
 protected:
  /// Makes an indirect descriptor available whose table holds `inner`.
  void offer_table(std::vector<GuestQueue::Descriptor> inner, uint32_t size_bytes, uint16_t more_flags = 0) {
    const GuestAddr table = ram_.allocate(inner.size() * sizeof inner[0]);
    ram_.write(table, std::as_bytes(std::span(inner)));
    offer_at(table.value(), size_bytes, more_flags);
  }
  void offer_at(uint64_t table, uint32_t size_bytes, uint16_t more_flags = 0) {
    const auto flags = static_cast<uint16_t>(kDescIndirect | more_flags);
    driver_.set_descriptor(0, {.addr = table, .len = size_bytes, .flags = flags, .next = 1});
    driver_.offer(0);
  }
  static constexpr GuestQueue::Descriptor kPlain{.addr = FakeRam::kBase.value(), .len = 1, .flags = 0, .next = 0};
};

TEST_F(SplitQueueIndirectTest, NotNegotiatedIsAFault) {
  set_up(kVirtioFEventIdx);
  offer_table({kPlain}, 16);
  expect_fault(RingFault::kIndirect);
}

TEST_F(SplitQueueIndirectTest, NestedIsAFault) {
  set_up(kAllFeatures);
  offer_table({{.addr = FakeRam::kBase.value(), .len = 16, .flags = kDescIndirect, .next = 0}}, 16);
  expect_fault(RingFault::kIndirect);
}

TEST_F(SplitQueueIndirectTest, NextBesideItIsAFault) {
  set_up(kAllFeatures);
  offer_table({kPlain}, 16, kDescNext);
  expect_fault(RingFault::kIndirect);
}

TEST_F(SplitQueueIndirectTest, TheWriteFlagBesideItIsIgnored) {
  set_up(kAllFeatures);
  offer_table({kPlain}, 16, kDescWrite);
  EXPECT_EQ(pop_one().readable_size(), 1U);
}

TEST_F(SplitQueueIndirectTest, AnEmptyTableIsAFault) {
  set_up(kAllFeatures);
  offer_table({kPlain}, 0);
  expect_fault(RingFault::kIndirect);
}

TEST_F(SplitQueueIndirectTest, APartOfADescriptorIsAFault) {
  set_up(kAllFeatures);
  offer_table({kPlain, kPlain}, 17);
  expect_fault(RingFault::kIndirect);
}

TEST_F(SplitQueueIndirectTest, ATableAboveTheMaximumIsAFault) {
  set_up(kAllFeatures);
  offer_at(FakeRam::kBase.value(), 16 * (kMaxQueueSize + 1));
  expect_fault(RingFault::kIndirect);
}

TEST_F(SplitQueueIndirectTest, ATableOutsideRamIsAFault) {
  set_up(kAllFeatures);
  offer_at(ram_.end_minus(16).value(), 32);
  expect_fault(RingFault::kAddress);
}

TEST_F(SplitQueueIndirectTest, ANextOutsideTheTableIsAFault) {
  set_up(kAllFeatures);
  offer_table({{.addr = FakeRam::kBase.value(), .len = 1, .flags = kDescNext, .next = 2}, kPlain}, 32);
  expect_fault(RingFault::kDescriptor);
}

TEST_F(SplitQueueIndirectTest, ALoopInTheTableIsAFault) {
  set_up(kAllFeatures);
  offer_table({{.addr = FakeRam::kBase.value(), .len = 1, .flags = kDescNext, .next = 1},
               {.addr = FakeRam::kBase.value(), .len = 1, .flags = kDescNext, .next = 0}},
              32);
  expect_fault(RingFault::kChainLength);
}

TEST_F(SplitQueueTest, EveryFaultHasAText) {
  for (unsigned fault = 0; fault <= static_cast<unsigned>(RingFault::kTooLong); ++fault) {
    EXPECT_FALSE(text_of(static_cast<RingFault>(fault)).empty());
  }
}

}  // namespace
}  // namespace tandem::devices
