// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/guest_memory.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tandem {
namespace {

/// Two neighbouring regions at 0x1000 and 0x2000, and one far away that ends at 2^64 - 1.
class GuestMemoryTest : public ::testing::Test {
 protected:
  alignas(8) std::array<std::byte, 0x1000> low_{};
  alignas(8) std::array<std::byte, 0x1000> high_{};
  alignas(8) std::array<std::byte, 16> top_{};
  GuestMemory memory_{{{GuestRange::fixed(0x1000, 0x1000), low_},
                       {GuestRange::fixed(0x2000, 0x1000), high_},
                       {GuestRange::fixed(UINT64_MAX - 15, 16), top_}}};
};

TEST_F(GuestMemoryTest, ValuesComeBack) {
  ASSERT_TRUE(memory_.write_value(GuestAddr(0x1001), uint32_t{0xdeadbeef}));
  EXPECT_EQ(memory_.read_value<uint32_t>(GuestAddr(0x1001)).value(), 0xdeadbeefU);
}

TEST_F(GuestMemoryTest, AnAccessMayCrossRegions) {
  ASSERT_TRUE(memory_.write_value(GuestAddr(0x1ffe), uint32_t{0x44332211}));
  EXPECT_EQ(low_[0xfff], std::byte{0x22});
  EXPECT_EQ(high_[0], std::byte{0x33});
  EXPECT_EQ(memory_.read_value<uint32_t>(GuestAddr(0x1ffe)).value(), 0x44332211U);
}

TEST_F(GuestMemoryTest, TheLastBytesAreReachableAndNothingBeyond) {
  EXPECT_TRUE(memory_.read_value<uint64_t>(GuestAddr(0x2ff8)));
  EXPECT_FALSE(memory_.read_value<uint64_t>(GuestAddr(0x2ff9)));
  EXPECT_FALSE(memory_.read_value<uint8_t>(GuestAddr(0xfff)));
  EXPECT_TRUE(memory_.read_value<uint64_t>(GuestAddr(UINT64_MAX - 7)));
  EXPECT_FALSE(memory_.read_value<uint64_t>(GuestAddr(UINT64_MAX - 6)));
}

TEST_F(GuestMemoryTest, ARefusedWriteWritesNothing) {
  EXPECT_FALSE(memory_.write_value(GuestAddr(0x2ffc), ~uint64_t{0}));
  EXPECT_EQ(high_[0xffc], std::byte{0});
}

TEST_F(GuestMemoryTest, HostViewsStayInsideOneRegion) {
  EXPECT_TRUE(memory_.writable(GuestRange::fixed(0x2000, 0x1000)));
  EXPECT_FALSE(memory_.writable(GuestRange::fixed(0x1800, 0x1000)));
  EXPECT_FALSE(memory_.readable(GuestRange::fixed(0x2000, 0x1001)));
}

TEST_F(GuestMemoryTest, AtomicAccessMustBeAligned) {
  EXPECT_TRUE(memory_.store(GuestAddr(0x1002), uint16_t{7}, std::memory_order_release));
  EXPECT_EQ(memory_.load<uint16_t>(GuestAddr(0x1002), std::memory_order_acquire).value(), 7);
  EXPECT_FALSE(memory_.load<uint16_t>(GuestAddr(0x1001), std::memory_order_acquire));
}

TEST_F(GuestMemoryTest, AnEmptyAccessIsFineAnywhere) { EXPECT_TRUE(memory_.read(GuestAddr(0), {})); }

}  // namespace
}  // namespace tandem
