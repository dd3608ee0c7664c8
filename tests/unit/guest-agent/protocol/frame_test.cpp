// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/protocol/frame.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tandem::agent {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> wire(FrameKind kind, std::string_view payload) {
  std::vector<std::byte> out;
  append_frame(out, kind, bytes_of(payload));
  return out;
}

TEST(FrameTest, AFrameIsItsLengthItsKindThreeZerosAndThePayload) {
  EXPECT_EQ(wire(FrameKind::kOutput, "ab"), bytes_of(std::string("\x02\0\0\0\x03\0\0\0ab", 10)));
}

TEST(FrameDecoderTest, FramesComeOutWhateverPiecesTheyCameIn) {
  std::vector<std::byte> stream = wire(FrameKind::kMessage, "first");
  const auto second = wire(FrameKind::kInput, "");
  stream.insert(stream.end(), second.begin(), second.end());
  FrameDecoder decoder;
  std::vector<Frame> frames;
  for (const std::byte byte : stream) {
    decoder.append({&byte, 1});
    while (auto frame = decoder.next().value()) {
      frames.push_back(*frame);
    }
  }
  const std::vector<Frame> expected{{FrameKind::kMessage, bytes_of("first")}, {FrameKind::kInput, {}}};
  EXPECT_EQ(frames, expected);
}

TEST(FrameDecoderTest, SeveralFramesComeOutOfOnePiece) {
  std::vector<std::byte> stream = wire(FrameKind::kOutput, "1");
  const auto second = wire(FrameKind::kErrorOutput, "2");
  stream.insert(stream.end(), second.begin(), second.end());
  FrameDecoder decoder;
  decoder.append(stream);
  EXPECT_EQ(decoder.next().value(), (Frame{FrameKind::kOutput, bytes_of("1")}));
  EXPECT_EQ(decoder.next().value(), (Frame{FrameKind::kErrorOutput, bytes_of("2")}));
  EXPECT_EQ(decoder.next().value(), std::nullopt);
}

struct BadHeader {
  const char* name;
  std::string_view bytes;
};

class BadHeaderTest : public testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaderTest, IsRefusedBeforeItsPayloadComes) {
  FrameDecoder decoder;
  decoder.append(bytes_of(GetParam().bytes));
  const auto frame = decoder.next();
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code(), Errc::kCorrupt);
}

using namespace std::string_view_literals;
INSTANTIATE_TEST_SUITE_P(Frames, BadHeaderTest,
                         testing::Values(BadHeader{"KindZero", "\0\0\0\0\0\0\0\0"sv},
                                         BadHeader{"KindSix", "\0\0\0\0\x06\0\0\0"sv},
                                         BadHeader{"ReservedByteSet", "\0\0\0\0\x01\0\0\x01"sv},
                                         BadHeader{"MessageTooLong", "\x01\0\x02\0\x01\0\0\0"sv},
                                         BadHeader{"InputTooLong", "\x01\0\x01\0\x02\0\0\0"sv},
                                         BadHeader{"LengthAllOnes", "\xff\xff\xff\xff\x01\0\0\0"sv},
                                         BadHeader{"Text", "GET / HTTP/1.1\r\n"sv}),
                         [](const auto& row) { return row.param.name; });

TEST(FrameDecoderTest, TheLongestPayloadIsTaken) {
  FrameDecoder decoder;
  decoder.append(wire(FrameKind::kMessage, std::string(kMaxMessageBytes, 'm')));
  EXPECT_EQ(decoder.next().value()->payload.size(), kMaxMessageBytes);
}

TEST(CreditTest, GoesThroughAFrame) {
  EXPECT_EQ(credit_of({FrameKind::kCredit, credit_payload(0x12345678)}).value(), 0x12345678U);
}

TEST(CreditTest, OfAnotherLengthOrKindIsRefused) {
  EXPECT_FALSE(credit_of({FrameKind::kCredit, bytes_of("123")}));
  EXPECT_FALSE(credit_of({FrameKind::kInput, bytes_of("1234")}));
}

}  // namespace
}  // namespace tandem::agent
