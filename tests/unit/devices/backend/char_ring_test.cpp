// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_ring.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tandem::devices {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string take(CharRing& ring) {
  std::string text;
  while (ring.unsent_bytes() != 0) {
    const auto part = ring.unsent();
    text.append(reinterpret_cast<const char*>(part.data()), part.size());
    ring.mark_sent(part.size());
  }
  return text;
}

TEST(CharRingTest, GivesBackWhatWasAppended) {
  CharRing ring(16, CharRing::History::kForget);
  EXPECT_EQ(ring.append(bytes_of("abc")), 0U);
  EXPECT_EQ(ring.append(bytes_of("def")), 0U);
  EXPECT_EQ(take(ring), "abcdef");
  EXPECT_TRUE(ring.unsent().empty());
}

TEST(CharRingTest, FullRingLeavesTheNewestOut) {
  CharRing ring(4, CharRing::History::kForget);
  EXPECT_EQ(ring.append(bytes_of("abcdef")), 2U);
  EXPECT_EQ(ring.append(bytes_of("x")), 1U);
  EXPECT_EQ(take(ring), "abcd");
}

TEST(CharRingTest, AppendOverOldestKeepsTheNewest) {
  CharRing ring(4, CharRing::History::kForget);
  ring.append_over_oldest(bytes_of("abc"));
  ring.append_over_oldest(bytes_of("def"));
  EXPECT_EQ(take(ring), "cdef");
  ring.append_over_oldest(bytes_of("0123456789"));
  EXPECT_EQ(take(ring), "6789");
}

TEST(CharRingTest, WrapsAroundAndGrowsWithoutLosingOrder) {
  CharRing ring(1U << 20, CharRing::History::kForget);
  std::string sent;
  std::string got;
  for (unsigned round = 0; round < 200; ++round) {
    const std::string text(97 + round, static_cast<char>('a' + round % 26));
    sent += text;
    ASSERT_EQ(ring.append(bytes_of(text)), 0U);
    const auto part = ring.unsent().first(std::min<size_t>(ring.unsent().size(), 89));
    got.append(reinterpret_cast<const char*>(part.data()), part.size());
    ring.mark_sent(part.size());
  }
  got += take(ring);
  EXPECT_EQ(got, sent);
}

TEST(CharRingTest, HistoryIsSentAgainAfterRewind) {
  CharRing ring(4, CharRing::History::kKeep);
  ring.append(bytes_of("abc"));
  EXPECT_EQ(take(ring), "abc");
  ring.append(bytes_of("de"));
  EXPECT_EQ(take(ring), "de");
  ring.rewind();
  EXPECT_EQ(take(ring), "bcde");
}

TEST(CharRingTest, HistoryMakesRoomForWhatIsToBeSent) {
  CharRing ring(4, CharRing::History::kKeep);
  ring.append(bytes_of("abcd"));
  ring.mark_sent(3);
  EXPECT_EQ(ring.append(bytes_of("efgh")), 1U);
  EXPECT_EQ(take(ring), "defg");
}

}  // namespace
}  // namespace tandem::devices
