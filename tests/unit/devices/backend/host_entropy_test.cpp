// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/host_entropy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::devices {
namespace {

TEST(HostEntropyTest, FillsMoreThanOneSystemCallGives) {
  HostEntropy source;
  std::vector<std::byte> bytes(1U << 20);
  ASSERT_TRUE(source.fill(bytes));
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  const auto tail = std::span(bytes).last(64);
  EXPECT_FALSE(std::ranges::all_of(tail, is_zero)) << "512 random bits are not all zero";
}

TEST(HostEntropyTest, FillsNothingWhenNothingIsAskedFor) {
  HostEntropy source;
  EXPECT_TRUE(source.fill({}));
}

}  // namespace
}  // namespace tandem::devices
