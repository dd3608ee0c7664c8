// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_rng/virtio_rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/virtio_rig.hpp"

namespace tandem::devices {
namespace {

/// "Random" bytes that count up from 1, so that tests see which bytes were written.
struct CountingEntropy final : EntropySource {
  Result<void> fill(std::span<std::byte> out) override {
    if (is_broken) {
      return fail(Errc::kIo, "no entropy");
    }
    for (std::byte& byte : out) {
      byte = std::byte{++last};
    }
    filled_bytes += out.size();
    return {};
  }
  uint8_t last = 0;
  size_t filled_bytes = 0;
  bool is_broken = false;
};

class VirtioRngTest : public ::testing::Test {
 protected:
  static constexpr uint16_t kQueue = 0;

  void set_up() { rig_.activate(rng_, 0); }
  GuestQueue& driver() { return rig_.driver(kQueue); }

  VirtioRig rig_;
  CountingEntropy entropy_;
  VirtioRng rng_{"rng0", rig_.executor(), entropy_};
};

TEST_F(VirtioRngTest, IsAnEntropyDeviceWithOneQueueAndNoConfiguration) {
  EXPECT_EQ(rng_.device_id(), 4U);
  EXPECT_EQ(rng_.device_features(), 0U);
  EXPECT_EQ(rng_.queue_sizes().size(), 1U);
  std::array<std::byte, 4> config{std::byte{1}, std::byte{1}, std::byte{1}, std::byte{1}};
  rng_.read_config(UINT64_MAX, config);
  EXPECT_EQ(config, (std::array<std::byte, 4>{}));
  rng_.write_config(UINT64_MAX, config);
}

TEST_F(VirtioRngTest, FillsAllPiecesOfABuffer) {
  set_up();
  const auto request = driver().chain().writable(2).writable(3).submit();
  rng_.notify(kQueue);
  const auto used = driver().take_used();
  ASSERT_TRUE(used);
  EXPECT_EQ(used->len, 5U);
  EXPECT_EQ(rig_.ram().read(request.writable[0].base(), 2), (std::vector{std::byte{1}, std::byte{2}}));
  EXPECT_EQ(rig_.ram().read(request.writable[1].base(), 3), (std::vector{std::byte{3}, std::byte{4}, std::byte{5}}));
  EXPECT_EQ(rig_.transport().used_count(kQueue), 1U);
}

TEST_F(VirtioRngTest, ATurnThatComesDuringAPauseWaitsForItsEnd) {
  set_up();
  for (unsigned count = 0; count < VirtioRng::kBuffersPerRun; ++count) {
    driver().chain().piece(FakeRam::kBase.value(), 1, kDescWrite).submit();
  }
  rng_.notify(kQueue);
  ASSERT_TRUE(driver().take_used());
  driver().chain().writable(1).submit();
  ASSERT_TRUE(rng_.pause());
  rig_.run();
  EXPECT_EQ(entropy_.filled_bytes, VirtioRng::kBuffersPerRun);
  rig_.resume(rng_);
  EXPECT_EQ(entropy_.filled_bytes, VirtioRng::kBuffersPerRun + 1);
}

TEST_F(VirtioRngTest, ALongBufferIsFilledInPart) {
  set_up();
  const auto request = driver().chain().writable(VirtioRng::kMaxBytesPerBuffer + 1).submit();
  rng_.notify(kQueue);
  EXPECT_EQ(driver().take_used()->len, VirtioRng::kMaxBytesPerBuffer);
  const GuestAddr beyond(request.writable[0].last());
  EXPECT_EQ(rig_.ram().read(beyond, 1)[0], std::byte{0});
}

TEST_F(VirtioRngTest, ABufferWithoutRoomIsReturnedEmpty) {
  set_up();
  driver().chain().readable("only readable").submit();
  driver().chain().writable(0).submit();
  rng_.notify(kQueue);
  EXPECT_EQ(driver().take_used()->len, 0U);
  EXPECT_EQ(driver().take_used()->len, 0U);
  EXPECT_EQ(entropy_.filled_bytes, 0U);
  EXPECT_FALSE(rig_.transport().needs_reset());
}

TEST_F(VirtioRngTest, AGuestThatAsksALotIsServedInRuns) {
  set_up();
  static_assert(VirtioRig::kQueueSize == VirtioRng::kBuffersPerRun);
  for (unsigned count = 0; count < VirtioRng::kBuffersPerRun; ++count) {
    driver().chain().piece(FakeRam::kBase.value(), 1, kDescWrite).submit();
  }
  rng_.notify(kQueue);
  EXPECT_EQ(entropy_.filled_bytes, VirtioRng::kBuffersPerRun);
  ASSERT_TRUE(driver().take_used());
  driver().chain().writable(1).submit();
  rng_.notify(kQueue);
  EXPECT_EQ(entropy_.filled_bytes, VirtioRng::kBuffersPerRun) << "the device waits for its next turn";
  rig_.run();
  EXPECT_EQ(entropy_.filled_bytes, VirtioRng::kBuffersPerRun + 1);
}

TEST_F(VirtioRngTest, ATurnThatComesAfterAResetDoesNothing) {
  set_up();
  for (unsigned count = 0; count < VirtioRng::kBuffersPerRun; ++count) {
    driver().chain().writable(1).submit();
  }
  rng_.notify(kQueue);
  rig_.reset(rng_);
  rig_.run();
  EXPECT_EQ(entropy_.filled_bytes, VirtioRng::kBuffersPerRun);
}

TEST_F(VirtioRngTest, WithoutEntropyTheDeviceNeedsAReset) {
  set_up();
  entropy_.is_broken = true;
  driver().chain().writable(8).submit();
  rng_.notify(kQueue);
  EXPECT_TRUE(rig_.transport().needs_reset());
  EXPECT_FALSE(driver().take_used());
  rng_.notify(kQueue);
}

TEST_F(VirtioRngTest, ABrokenRingNeedsAResetAndWorksAfterIt) {
  set_up();
  rig_.break_ring(kQueue);
  rng_.notify(kQueue);
  EXPECT_EQ(rig_.transport().needs_reset(), text_of(RingFault::kDescriptor));
  rig_.reset(rng_);
  set_up();
  driver().chain().writable(8).submit();
  rng_.notify(kQueue);
  EXPECT_TRUE(driver().take_used());
}

TEST_F(VirtioRngTest, DoorbellsOutOfPlaceAreIgnored) {
  rng_.notify(kQueue);
  set_up();
  driver().chain().writable(8).submit();
  rng_.notify(1);
  rng_.notify(UINT16_MAX);
  EXPECT_FALSE(driver().take_used());
}

TEST_F(VirtioRngTest, AQueueThatIsNotReadyIsLeftAlone) {
  rig_.activate(rng_, 0, {kQueue});
  driver().chain().writable(8).submit();
  rng_.notify(kQueue);
  EXPECT_FALSE(driver().take_used());
  EXPECT_FALSE(rig_.transport().needs_reset());
}

TEST_F(VirtioRngTest, PausesBeforeADriverIsThere) {
  EXPECT_TRUE(rng_.pause());
  EXPECT_TRUE(rng_.pause());
  EXPECT_TRUE(rng_.resume());
  EXPECT_TRUE(rng_.resume());
}

TEST_F(VirtioRngTest, DoorbellsDuringAPauseAreAnsweredAfterIt) {
  set_up();
  ASSERT_TRUE(rng_.pause());
  driver().chain().writable(8).submit();
  rng_.notify(kQueue);
  EXPECT_FALSE(driver().take_used());
  rig_.resume(rng_);
  EXPECT_TRUE(driver().take_used());
}

TEST_F(VirtioRngTest, HasNoState) {
  const StateRecord record = rng_.save().value();
  EXPECT_EQ(record, StateRecord::none("virtio_rng"));
  EXPECT_TRUE(rng_.restore(record));
}

TEST_F(VirtioRngTest, AnotherDevicesStateIsRefused) {
  const std::array<StateRecord, 3> wrong{
      StateRecord::none("virtio_blk"),
      StateRecord{.kind = "virtio_rng", .version = 1, .payload = {}},
      StateRecord{.kind = "virtio_rng", .version = 0, .payload = std::vector<std::byte>(8)},
  };
  EXPECT_EQ(rng_.restore(wrong[0]).error().code(), Errc::kCorrupt);
  EXPECT_EQ(rng_.restore(wrong[1]).error().code(), Errc::kCorrupt);
  EXPECT_EQ(rng_.restore(wrong[2]).error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace tandem::devices
