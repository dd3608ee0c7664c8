// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/checksum/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tandem {
namespace {

Checksum of(std::string_view text) { return checksum_of(std::as_bytes(std::span(text))); }

// Reference values: xxh128sum(1).
TEST(ChecksumTest, IsTheOneOfTheAlgorithmsOwnProgram) {
  EXPECT_EQ(of("").text(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(of("tandem").text(), "40f4a999f5b887cdbf9c97ebdc3d178d");
}

TEST(ChecksumTest, TextAndBytesLeadBackToIt) {
  const Checksum checksum = of("hello");
  EXPECT_EQ(Checksum::from_text(checksum.text()), checksum);
  EXPECT_EQ(Checksum::from_bytes(checksum.bytes()), checksum);
}

TEST(ChecksumTest, TextOfAnyOtherFormIsNone) {
  std::string text = of("hello").text();
  EXPECT_EQ(Checksum::from_text(text + '0'), std::nullopt);
  EXPECT_EQ(Checksum::from_text(text.substr(1)), std::nullopt);
  text[5] = 'A';
  EXPECT_EQ(Checksum::from_text(text), std::nullopt);
  text[5] = '\0';
  EXPECT_EQ(Checksum::from_text(text), std::nullopt);
}

TEST(ChecksumTest, PiecesGiveTheSameAsTheWhole) {
  std::vector<std::byte> bytes(300'001);
  std::ranges::generate(bytes,
                        [state = 1U]() mutable { return static_cast<std::byte>((state = state * 69069 + 1) >> 24); });
  ChecksumStream stream;
  EXPECT_EQ(stream.checksum(), checksum_of({}));
  stream.append(std::span(bytes).first(1));
  stream.append({});
  stream.append(std::span(bytes).subspan(1, 100'000));
  EXPECT_EQ(stream.checksum(), checksum_of(std::span(bytes).first(100'001)));
  stream.append(std::span(bytes).subspan(100'001));
  EXPECT_EQ(stream.checksum(), checksum_of(bytes));
}

}  // namespace
}  // namespace tandem
