// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/frame_channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

#include "guest-agent/protocol/messages.hpp"

namespace tandem::agent {
namespace {

class FrameChannelTest : public testing::Test {
 protected:
  FrameChannelTest() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    left_.emplace(FrameChannel::create(UniqueFd(pair[0])).value());
    right_.emplace(FrameChannel::create(UniqueFd(pair[1])).value());
  }
  void send_raw(std::string_view bytes) const {
    ASSERT_EQ(::send(left_->fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  std::optional<FrameChannel> left_;
  std::optional<FrameChannel> right_;
};

TEST_F(FrameChannelTest, AMessageArrives) {
  ASSERT_TRUE(left_->send(SetTimeRequest{.realtime_ns = 42}));
  EXPECT_EQ(right_->receive_message().value().as<SetTimeRequest>().value().realtime_ns, 42U);
}

TEST_F(FrameChannelTest, MoreThanTheSocketHoldsIsSentAsItIsRead) {
  constexpr int kFrames = 64;
  const std::vector<std::byte> payload(kMaxStreamBytes, std::byte{7});
  std::thread reader([&] {
    for (int count = 0; count < kFrames; ++count) {
      EXPECT_EQ(right_->receive().value(), (Frame{FrameKind::kOutput, payload}));
    }
  });
  for (int count = 0; count < kFrames; ++count) {
    EXPECT_TRUE(left_->send(FrameKind::kOutput, payload));
  }
  reader.join();
}

TEST_F(FrameChannelTest, WhatIsQueuedWaitsForItsFlush) {
  left_->queue(FrameKind::kInput, {});
  EXPECT_EQ(left_->queued_bytes(), 8U);
  ASSERT_TRUE(left_->flush());
  EXPECT_EQ(left_->queued_bytes(), 0U);
  EXPECT_EQ(right_->receive().value().kind, FrameKind::kInput);
}

TEST_F(FrameChannelTest, WhatWasSentIsForgottenThoughTheQueueNeverRunsEmpty) {
  const std::vector<std::byte> payload(kMaxStreamBytes);
  size_t passed_bytes = 0;
  while (passed_bytes < 1024 * kMaxStreamBytes) {
    while (left_->queued_bytes() < kMaxStreamBytes) {
      left_->queue(FrameKind::kOutput, payload);
    }
    ASSERT_TRUE(left_->flush());
    ASSERT_LE(left_->stored_bytes(), 4 * kMaxStreamBytes);
    // Reads less than it sends, so that some is left each time.
    std::array<std::byte, kMaxStreamBytes / 4> bytes{};
    const ssize_t count = ::recv(right_->fd(), bytes.data(), bytes.size(), 0);
    passed_bytes += count > 0 ? static_cast<size_t>(count) : 0;
  }
}

TEST_F(FrameChannelTest, AMessageThatIsTooLongIsAnErrorAndTheNextIsSent) {
  const auto sent = left_->send(GetRequest{.path = std::string(kMaxMessageBytes, 'p')});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::kOutOfRange);
  EXPECT_FALSE(left_->is_broken());
  ASSERT_TRUE(left_->send(GetRequest{.path = "short"}));
  EXPECT_EQ(right_->receive_message().value().as<GetRequest>().value().path, "short");
}

TEST_F(FrameChannelTest, FlushNeverWaits) {
  const std::vector<std::byte> payload(kMaxStreamBytes);
  for (int count = 0; count < 100; ++count) {
    left_->queue(FrameKind::kOutput, payload);
  }
  ASSERT_TRUE(left_->flush());
  EXPECT_GT(left_->queued_bytes(), 0U);
}

TEST_F(FrameChannelTest, TheEndOfTheOtherSideIsKClosed) {
  right_.reset();
  EXPECT_EQ(left_->receive().error().code(), Errc::kClosed);
  EXPECT_EQ(left_->send(Done{}).error().code(), Errc::kClosed);
}

TEST_F(FrameChannelTest, AFrameCutShortIsKClosed) {
  send_raw({"\x05\0\0\0\x01\0\0\0ab", 10});
  left_.reset();
  EXPECT_EQ(right_->receive().error().code(), Errc::kClosed);
}

TEST_F(FrameChannelTest, GarbageIsKCorrupt) {
  send_raw("this is no frame at all");
  EXPECT_EQ(right_->receive().error().code(), Errc::kCorrupt);
}

TEST_F(FrameChannelTest, AStreamsFrameIsNoMessage) {
  ASSERT_TRUE(left_->send(FrameKind::kInput, {}));
  EXPECT_EQ(right_->receive_message().error().code(), Errc::kCorrupt);
}

TEST_F(FrameChannelTest, ADeadlineThatHasPassedEndsTheWaiting) {
  const auto frame = right_->receive(Deadline(std::chrono::seconds(0)));
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().message(), "no answer in time");
}

TEST_F(FrameChannelTest, AnInterruptEndsTheWaiting) {
  const UniqueFd interrupt = create_eventfd().value();
  signal_eventfd(interrupt.get());
  right_->give_up_on(interrupt.get());
  const auto frame = right_->receive();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().message(), "interrupted");
  EXPECT_FALSE(right_->is_broken());
}

}  // namespace
}  // namespace tandem::agent
