// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/guest_ram.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tandem {
namespace {

constexpr auto kRange = GuestRange::fixed(0x40000000, 2U << 20);

UniqueFd filled_file(size_t size_bytes) {
  std::FILE* const file = std::tmpfile();
  const std::vector<char> content(size_bytes, 'f');
  EXPECT_EQ(std::fwrite(content.data(), 1, size_bytes, file), size_bytes);
  std::fflush(file);
  return UniqueFd(::dup(::fileno(file)));
}

void expect_discard_leaves_zeros(GuestRam& ram) {
  std::ranges::fill(ram.bytes(), std::byte{0xaa});
  const size_t page = host_page_size();
  // One byte short of two pages on each side: only the page between them is wholly inside.
  const auto range = GuestRange::create(GuestAddr(kRange.base().value() + 1), 3 * page - 2).value();
  ASSERT_TRUE(ram.discard(range));
  EXPECT_EQ(ram.bytes()[page - 1], std::byte{0xaa});
  EXPECT_TRUE(std::ranges::all_of(ram.bytes().subspan(page, page), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(ram.bytes()[2 * page], std::byte{0xaa});
}

TEST(GuestRamTest, IsAlignedForHugePages) {
  const auto ram = GuestRam::create_anonymous(kRange).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(ram.bytes().data()) % (2U << 20), 0U);
}

TEST(GuestRamTest, DiscardedAnonymousPagesReadZero) {
  auto ram = GuestRam::create_anonymous(kRange).value();
  expect_discard_leaves_zeros(ram);
}

TEST(GuestRamTest, DiscardedSharedPagesReadZero) {
  auto ram = GuestRam::create_shared(kRange).value();
  EXPECT_GE(ram.shared_fd(), 0);
  expect_discard_leaves_zeros(ram);
}

TEST(GuestRamTest, DiscardedPagesOfAFileReadZeroAndNotTheFile) {
  auto ram = GuestRam::create_private_file(kRange, filled_file(kRange.size())).value();
  EXPECT_EQ(ram.bytes()[0], std::byte{'f'});
  expect_discard_leaves_zeros(ram);
}

TEST(GuestRamTest, AFileShorterThanRamIsRefused) {
  const auto ram = GuestRam::create_private_file(kRange, filled_file(kRange.size() - 1));
  ASSERT_FALSE(ram);
  EXPECT_EQ(ram.error().code(), Errc::kOutOfRange);
}

TEST(GuestRamTest, MoreThanTheAddressSpaceIsRefused) {
  const auto ram = GuestRam::create_anonymous(GuestRange::fixed(0x40000000, uint64_t{1} << 62));
  ASSERT_FALSE(ram);
  EXPECT_EQ(ram.error().code(), Errc::kOutOfMemory);
}

}  // namespace
}  // namespace tandem
