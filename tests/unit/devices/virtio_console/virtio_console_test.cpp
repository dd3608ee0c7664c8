// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_console/virtio_console.hpp"

#include <gtest/gtest.h>

#include <string>

#include "devices/virtio_console/virtio_console_regs.hpp"
#include "devices/virtio_console/virtio_console_state.hpp"
#include "tests/fakes/fake_char_backend.hpp"
#include "tests/fakes/virtio_rig.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_console;

namespace {

class VirtioConsoleTest : public ::testing::Test {
 protected:
  void set_up() { rig_.activate(console_, kFSize | kFEmergWrite); }
  GuestQueue& rx() { return rig_.driver(kReceiveQueue); }
  GuestQueue& tx() { return rig_.driver(kTransmitQueue); }

  /// Offers a receive buffer of `size_bytes`, and tells the device. @return where it is.
  GuestAddr offer(uint32_t size_bytes) {
    const GuestAddr addr = rx().chain().writable(size_bytes).submit().writable.at(0).base();
    console_.notify(kReceiveQueue);
    return addr;
  }
  std::string text_at(GuestAddr addr, size_t size_bytes) {
    const auto bytes = rig_.ram().read(addr, size_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  template <typename T>
  T config(uint64_t offset) {
    std::array<std::byte, sizeof(T)> bytes{};
    console_.read_config(offset, bytes);
    return load_le<T>(bytes);
  }

  VirtioRig rig_;
  FakeCharBackend backend_;
  VirtioConsole console_{"hvc0", rig_.executor(), backend_};
};

// --- Configuration ---

TEST_F(VirtioConsoleTest, IsAConsoleWithTwoQueues) {
  EXPECT_EQ(console_.device_id(), 3U);
  EXPECT_EQ(console_.queue_sizes().size(), 2U);
  EXPECT_EQ(console_.device_features(), kFSize | kFEmergWrite);
}

TEST_F(VirtioConsoleTest, ConfigurationHoldsSizeAndOnePort) {
  console_.set_size({.cols = 132, .rows = 43});
  EXPECT_EQ(config<uint16_t>(kCols), 132U);
  EXPECT_EQ(config<uint16_t>(kRows), 43U);
  EXPECT_EQ(config<uint32_t>(kMaxNrPorts), 1U);
  EXPECT_EQ(config<uint32_t>(kEmergWr), 0U);
}

TEST_F(VirtioConsoleTest, ConfigurationBeyondItsEndIsZero) {
  EXPECT_EQ(config<uint64_t>(kConfigBytes), 0U);
  EXPECT_EQ(config<uint64_t>(UINT64_MAX), 0U);
  console_.set_size({.cols = 80, .rows = 25});
  EXPECT_EQ(config<uint64_t>(kRows), 25U | (uint64_t{1} << 16));
}

TEST_F(VirtioConsoleTest, ANewSizeInterruptsADriverThatKnowsSizes) {
  set_up();
  console_.set_size({.cols = 80, .rows = 25});
  EXPECT_EQ(rig_.transport().config_count(), 1U);
  console_.set_size({.cols = 80, .rows = 25});
  EXPECT_EQ(rig_.transport().config_count(), 1U) << "nothing has changed";
}

TEST_F(VirtioConsoleTest, ANewSizeDoesNotInterruptOtherDrivers) {
  console_.set_size({.cols = 80, .rows = 25});
  rig_.activate(console_, 0);
  console_.set_size({.cols = 80, .rows = 50});
  EXPECT_EQ(rig_.transport().config_count(), 0U);
}

TEST_F(VirtioConsoleTest, EmergencyWritesNeedNoDriver) {
  const std::array<std::byte, 4> value{std::byte{'!'}, std::byte{'x'}, std::byte{0}, std::byte{0}};
  console_.write_config(kEmergWr, value);
  EXPECT_EQ(backend_.output(), "!");
}

TEST_F(VirtioConsoleTest, OtherConfigurationWritesAreIgnored) {
  const std::array<std::byte, 8> value{std::byte{'!'}};
  console_.write_config(kCols, value);
  console_.write_config(kEmergWr + 1, value);
  console_.write_config(UINT64_MAX, value);
  console_.write_config(kEmergWr, {});
  EXPECT_EQ(backend_.output(), "");
  EXPECT_EQ(config<uint16_t>(kCols), 0U);
}

// --- Output ---

TEST_F(VirtioConsoleTest, OutputIsPassedOn) {
  set_up();
  tx().chain().readable("Hello").readable(", world\n").submit();
  console_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.output(), "Hello, world\n");
  EXPECT_EQ(tx().take_used()->len, 0U);
  EXPECT_EQ(rig_.transport().used_count(kTransmitQueue), 1U);
}

TEST_F(VirtioConsoleTest, ALongBufferIsPassedOnInRunsAndCompletely) {
  set_up();
  std::string text(3 * VirtioConsole::kBytesPerRun + 5, '.');
  for (size_t index = 0; index < text.size(); index += 1000) {
    text[index] = static_cast<char>('a' + index / 1000 % 26);
  }
  const auto split = std::string_view(text).substr(0, VirtioConsole::kBytesPerRun + 1);
  tx().chain().readable(split).readable(std::string_view(text).substr(split.size())).submit();
  tx().chain().readable("next").submit();
  console_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.output().size(), VirtioConsole::kBytesPerRun);
  EXPECT_FALSE(tx().take_used());
  console_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.output().size(), VirtioConsole::kBytesPerRun) << "the device waits for its next turn";
  rig_.run();
  EXPECT_EQ(backend_.output(), text + "next");
  EXPECT_TRUE(tx().take_used());
  EXPECT_TRUE(tx().take_used());
}

TEST_F(VirtioConsoleTest, OutputWithoutBytesIsReturned) {
  set_up();
  tx().chain().writable(16).submit();
  tx().chain().piece(FakeRam::kBase.value(), 0, 0).submit();
  console_.notify(kTransmitQueue);
  EXPECT_TRUE(tx().take_used());
  EXPECT_TRUE(tx().take_used());
  EXPECT_EQ(backend_.output(), "");
}

TEST_F(VirtioConsoleTest, OutputWaitsForTheEndOfAPause) {
  set_up();
  ASSERT_TRUE(console_.pause());
  tx().chain().readable("late").submit();
  console_.notify(kTransmitQueue);
  rig_.run();
  EXPECT_EQ(backend_.output(), "");
  rig_.resume(console_);
  EXPECT_EQ(backend_.output(), "late");
}

// --- Input ---

TEST_F(VirtioConsoleTest, InputGoesToTheDriversBuffer) {
  set_up();
  const GuestAddr addr = offer(64);
  backend_.type("ls\n");
  EXPECT_EQ(rx().take_used()->len, 3U);
  EXPECT_EQ(text_at(addr, 3), "ls\n");
  EXPECT_EQ(rig_.transport().used_count(kReceiveQueue), 1U);
}

TEST_F(VirtioConsoleTest, WithoutADriverInputStaysInTheHost) {
  backend_.type("typed ahead");
  EXPECT_EQ(backend_.pending(), "typed ahead");
  set_up();
  backend_.deliver();
  EXPECT_EQ(backend_.pending(), "typed ahead") << "the driver has given no buffer yet";
  const GuestAddr addr = offer(64);
  EXPECT_EQ(backend_.resume_count(), 1U);
  backend_.deliver();
  EXPECT_EQ(text_at(addr, 11), "typed ahead");
}

TEST_F(VirtioConsoleTest, PastedInputIsNotLost) {
  set_up();
  std::string pasted(64U << 10, 'x');
  for (size_t index = 0; index < pasted.size(); ++index) {
    pasted[index] = static_cast<char>('a' + index % 23);
  }
  backend_.type(pasted);
  std::string got;
  while (got.size() < pasted.size()) {
    const GuestAddr addr = offer(1000);
    backend_.deliver();
    const auto used = rx().take_used();
    ASSERT_TRUE(used);
    got += text_at(addr, used->len);
  }
  EXPECT_EQ(got, pasted);
  EXPECT_EQ(backend_.pending(), "");
}

TEST_F(VirtioConsoleTest, InputIsSpreadOverThePiecesOfABuffer) {
  set_up();
  const auto chain = rx().chain().writable(2).writable(4).submit();
  console_.notify(kReceiveQueue);
  backend_.type("abcdef");
  EXPECT_EQ(rx().take_used()->len, 6U);
  EXPECT_EQ(text_at(chain.writable[0].base(), 2), "ab");
  EXPECT_EQ(text_at(chain.writable[1].base(), 4), "cdef");
}

TEST_F(VirtioConsoleTest, DuringAPauseInputStaysInTheHost) {
  set_up();
  offer(64);
  ASSERT_TRUE(console_.pause());
  EXPECT_EQ(rig_.queue(kReceiveQueue).in_flight(), 0U) << "the buffer is put back";
  backend_.type("held");
  EXPECT_EQ(backend_.pending(), "held");
  rig_.resume(console_);
  backend_.deliver();
  EXPECT_EQ(backend_.pending(), "");
  EXPECT_EQ(rx().take_used()->len, 4U);
}

TEST_F(VirtioConsoleTest, AfterAResetInputStaysInTheHost) {
  set_up();
  offer(64);
  rig_.reset(console_);
  backend_.type("for the next kernel");
  EXPECT_EQ(backend_.pending(), "for the next kernel");
  set_up();
  offer(64);
  backend_.deliver();
  EXPECT_EQ(backend_.pending(), "");
}

// --- Hostile drivers, and doorbells out of place ---

TEST_F(VirtioConsoleTest, AReceiveBufferWithoutRoomNeedsAReset) {
  set_up();
  rx().chain().readable("no room").submit();
  console_.notify(kReceiveQueue);
  EXPECT_TRUE(rig_.transport().needs_reset());
  backend_.type("x");
  EXPECT_EQ(backend_.pending(), "x");
}

TEST_F(VirtioConsoleTest, ABrokenReceiveRingNeedsAReset) {
  set_up();
  rig_.break_ring(kReceiveQueue);
  console_.notify(kReceiveQueue);
  EXPECT_EQ(rig_.transport().needs_reset(), text_of(RingFault::kDescriptor));
}

TEST_F(VirtioConsoleTest, AReceiveRingThatBreaksDuringInputNeedsAReset) {
  set_up();
  offer(64);
  rig_.break_ring(kReceiveQueue);
  backend_.type("x");
  EXPECT_EQ(rx().take_used()->len, 1U);
  EXPECT_TRUE(rig_.transport().needs_reset());
  backend_.type("y");
  EXPECT_EQ(backend_.pending(), "y");
}

TEST_F(VirtioConsoleTest, ABrokenTransmitRingNeedsAResetAndWorksAfterIt) {
  set_up();
  offer(64);
  rig_.break_ring(kTransmitQueue);
  console_.notify(kTransmitQueue);
  EXPECT_TRUE(rig_.transport().needs_reset());
  backend_.type("x");
  EXPECT_EQ(backend_.pending(), "x");
  rig_.reset(console_);
  set_up();
  tx().chain().readable("alive").submit();
  console_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.output(), "alive");
}

TEST_F(VirtioConsoleTest, DoorbellsOutOfPlaceAreIgnored) {
  console_.notify(kReceiveQueue);
  console_.notify(kTransmitQueue);
  set_up();
  console_.notify(2);
  console_.notify(UINT16_MAX);
  rig_.activate(console_, 0, {kReceiveQueue, kTransmitQueue});
  console_.notify(kReceiveQueue);
  console_.notify(kTransmitQueue);
  EXPECT_FALSE(rig_.transport().needs_reset());
}

TEST_F(VirtioConsoleTest, ATurnThatComesAfterAResetDoesNothing) {
  set_up();
  tx().chain().readable(std::string(VirtioConsole::kBytesPerRun + 1, 'x')).submit();
  console_.notify(kTransmitQueue);
  rig_.reset(console_);
  rig_.run();
  EXPECT_EQ(backend_.output().size(), VirtioConsole::kBytesPerRun);
}

TEST_F(VirtioConsoleTest, AQueueTakenBackDuringOutputStartsAfresh) {
  set_up();
  tx().chain().readable(std::string(VirtioConsole::kBytesPerRun + 1, 'x')).submit();
  console_.notify(kTransmitQueue);
  ASSERT_TRUE(console_.pause());
  rig_.queue(kTransmitQueue).reset();
  rig_.resume(console_);
  GuestQueue again(rig_.ram(), VirtioRig::kQueueSize);
  ASSERT_TRUE(rig_.queue(kTransmitQueue).configure(again.state(), 0));
  again.chain().readable("not lost").submit();
  console_.notify(kTransmitQueue);
  rig_.run();
  EXPECT_EQ(backend_.output().substr(VirtioConsole::kBytesPerRun), "not lost");
}

TEST_F(VirtioConsoleTest, AQueueTakenBackDuringInputIsLeftAlone) {
  set_up();
  offer(64);
  rig_.queue(kReceiveQueue).reset();
  backend_.type("x");
  EXPECT_FALSE(rx().take_used());
  EXPECT_TRUE(console_.pause());
}

// --- Life cycle ---

TEST_F(VirtioConsoleTest, PausesBeforeADriverIsThere) {
  EXPECT_TRUE(console_.pause());
  EXPECT_TRUE(console_.pause());
  EXPECT_TRUE(console_.resume());
  EXPECT_TRUE(console_.resume());
}

TEST_F(VirtioConsoleTest, ALongBufferGoesOnAfterRestoreWhereItWas) {
  set_up();
  const std::string text(VirtioConsole::kBytesPerRun + 3, 'x');
  tx().chain().readable(text).submit();
  console_.set_size({.cols = 80, .rows = 25});
  console_.notify(kTransmitQueue);
  ASSERT_TRUE(console_.pause());
  const StateRecord record = console_.save().value();

  FakeCharBackend other_backend;
  VirtioConsole other("hvc0", rig_.executor(), other_backend);
  ASSERT_TRUE(other.pause());
  ASSERT_TRUE(other.restore(record));
  EXPECT_EQ(other.save().value(), record);
  rig_.reattach(other);
  EXPECT_EQ(other_backend.output(), "");
  rig_.resume(other);
  EXPECT_EQ(other_backend.output(), "xxx");
  rig_.run();
}

TEST_F(VirtioConsoleTest, RestoredProgressBeyondTheBufferReturnsIt) {
  ASSERT_TRUE(
      console_.restore(save_state(VirtioConsoleStateV1{.cols = 0, .rows = 0, .transmitted_bytes = UINT64_MAX})));
  set_up();
  tx().chain().readable("gone").submit();
  tx().chain().readable("here").submit();
  console_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.output(), "here");
}

TEST_F(VirtioConsoleTest, ResetForgetsProgressButNotTheTerminalsSize) {
  console_.set_size({.cols = 80, .rows = 25});
  ASSERT_TRUE(console_.restore(save_state(VirtioConsoleStateV1{.cols = 80, .rows = 25, .transmitted_bytes = 3})));
  ASSERT_TRUE(console_.reset());
  set_up();
  tx().chain().readable("whole").submit();
  console_.notify(kTransmitQueue);
  EXPECT_EQ(backend_.output(), "whole");
  EXPECT_EQ(config<uint16_t>(kCols), 80U);
}

TEST_F(VirtioConsoleTest, AnotherDevicesStateIsRefused) {
  EXPECT_EQ(console_.restore(StateRecord::none("virtio_console")).error().code(), Errc::kCorrupt);
  EXPECT_EQ(console_.restore(StateRecord::none("virtio_rng")).error().code(), Errc::kCorrupt);
}

TEST_F(VirtioConsoleTest, TheBackendLosesItsSinkWithTheDevice) {
  FakeCharBackend backend;
  {
    const VirtioConsole console("hvc1", rig_.executor(), backend);
    EXPECT_NE(backend.sink(), nullptr);
  }
  EXPECT_EQ(backend.sink(), nullptr);
}

}  // namespace
}  // namespace tandem::devices
