// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/guest_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

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

TEST_F(GuestMemoryTest, AnEmptyAccessIsFineAnywhere) {
  EXPECT_TRUE(memory_.read(GuestAddr(0), {}));
  EXPECT_TRUE(memory_.write(GuestAddr(0), {}));
}

/// A log of both neighbouring regions, in pages of 256 bytes.
class GuestMemoryLogTest : public GuestMemoryTest {
 protected:
  GuestMemoryLogTest() { memory_.log_writes(&log_); }
  std::vector<size_t> marked() const {
    std::vector<size_t> pages;
    for (size_t page = 0; page < log_.page_count(); ++page) {
      if (log_.is_marked(page)) {
        pages.push_back(page);
      }
    }
    return pages;
  }
  using Pages = std::vector<size_t>;
  DirtyBitmap log_{GuestRange::fixed(0x1000, 0x2000), 256};
};

TEST_F(GuestMemoryLogTest, EveryKindOfWriteIsMarked) {
  ASSERT_TRUE(memory_.write(GuestAddr(0x10ff), std::array<std::byte, 2>{}));
  ASSERT_TRUE(memory_.write_value(GuestAddr(0x1300), uint32_t{1}));
  ASSERT_TRUE(memory_.store(GuestAddr(0x1500), uint16_t{7}, std::memory_order_release));
  EXPECT_EQ(marked(), (Pages{0, 1, 3, 5}));
}

TEST_F(GuestMemoryLogTest, AWriteAcrossRegionsIsMarkedInBoth) {
  ASSERT_TRUE(memory_.write_value(GuestAddr(0x1ffe), uint32_t{1}));
  EXPECT_EQ(marked(), (Pages{15, 16}));
}

TEST_F(GuestMemoryLogTest, ReadsAndRefusedWritesAreNotMarked) {
  ASSERT_TRUE(memory_.read_value<uint64_t>(GuestAddr(0x1000)));
  ASSERT_TRUE(memory_.load<uint64_t>(GuestAddr(0x1000), std::memory_order_relaxed));
  ASSERT_TRUE(memory_.writable(GuestRange::fixed(0x1000, 16)));
  EXPECT_FALSE(memory_.write_value(GuestAddr(0x2ffc), ~uint64_t{0}));
  EXPECT_EQ(marked(), Pages{});
}

TEST_F(GuestMemoryLogTest, AWriteThroughAHostViewIsMarkedWhenItIsSaid) {
  const auto view = memory_.writable(GuestRange::fixed(0x2100, 0x200));
  ASSERT_TRUE(view);
  memory_.mark_written(*view);
  EXPECT_EQ(marked(), (Pages{17, 18}));
  memory_.mark_written(std::span<const std::byte>());
  memory_.mark_written(GuestRange::fixed(0x2f00, 0x100));
  EXPECT_EQ(marked(), (Pages{17, 18, 31}));
}

TEST_F(GuestMemoryLogTest, AWriteOutsideWhatTheLogCoversIsNotMarked) {
  ASSERT_TRUE(memory_.write_value(GuestAddr(UINT64_MAX - 7), uint64_t{1}));
  EXPECT_EQ(marked(), Pages{});
}

TEST_F(GuestMemoryLogTest, NothingIsMarkedOnceTheLogIsOff) {
  memory_.log_writes(nullptr);
  EXPECT_FALSE(memory_.logs_writes());
  ASSERT_TRUE(memory_.write_value(GuestAddr(0x1300), uint32_t{1}));
  memory_.mark_written(GuestRange::fixed(0x1000, 0x1000));
  EXPECT_EQ(marked(), Pages{});
}

}  // namespace
}  // namespace tandem
