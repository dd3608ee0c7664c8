// SPDX-License-Identifier: Apache-2.0
#include "devices/bus/mmio_bus.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace tandem::devices {
namespace {

/// Keeps the last access; answers reads with a value wider than any access.
struct RecordingHandler final : MmioHandler {
  MmioRead read(MmioAccess access) override {
    last = access;
    return bad ? MmioRead(std::unexpected(*bad)) : MmioRead(0x1122334455667788);
  }
  MmioWrite write(MmioAccess access, uint64_t value) override {
    last = access;
    written = value;
    return bad ? MmioWrite(std::unexpected(*bad)) : MmioWrite();
  }
  std::optional<MmioAccess> last;
  std::optional<uint64_t> written;
  std::optional<BadAccess> bad;
};

class MmioBusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(bus_.map(GuestRange::fixed(0x9000, 0x1000), "upper", upper_, mutex_));
    ASSERT_TRUE(bus_.map(GuestRange::fixed(0x8000, 0x1000), "lower", lower_, mutex_));
  }
  MmioBus bus_;
  RecordingHandler lower_;
  RecordingHandler upper_;
  std::mutex mutex_;
};

TEST_F(MmioBusTest, HandlersSeeOffsetsInTheirWindow) {
  bus_.read(GuestAddr(0x9010), 4);
  ASSERT_TRUE(upper_.last);
  EXPECT_EQ(upper_.last->offset, 0x10U);
  EXPECT_EQ(upper_.last->width_bytes, 4U);
  EXPECT_FALSE(lower_.last);
}

TEST_F(MmioBusTest, ValuesAreCutToTheWidth) {
  EXPECT_EQ(bus_.read(GuestAddr(0x8000), 2), 0x7788U);
  bus_.write(GuestAddr(0x8000), 1, 0xabcd);
  EXPECT_EQ(lower_.written, 0xcdU);
}

TEST_F(MmioBusTest, AnAccessThatLeavesItsWindowReachesNobody) {
  EXPECT_EQ(bus_.read(GuestAddr(0x8ffd), 4), 0U);
  EXPECT_FALSE(lower_.last);
  EXPECT_FALSE(upper_.last);
  EXPECT_EQ(bus_.bad_access_count(), 1U);
}

TEST_F(MmioBusTest, UnmappedAddressesReadZeroAndIgnoreWrites) {
  EXPECT_EQ(bus_.read(GuestAddr(0x7fff), 1), 0U);
  EXPECT_EQ(bus_.read(GuestAddr(0xa000), 8), 0U);
  EXPECT_EQ(bus_.read(GuestAddr(UINT64_MAX), 8), 0U);
  bus_.write(GuestAddr(0), 8, 1);
  EXPECT_EQ(bus_.bad_access_count(), 4U);
}

TEST_F(MmioBusTest, ABadAccessReadsZero) {
  lower_.bad = BadAccess::kWidth;
  EXPECT_EQ(bus_.read(GuestAddr(0x8000), 8), 0U);
  bus_.write(GuestAddr(0x8000), 8, 1);
  EXPECT_EQ(bus_.bad_access_count(), 2U);
}

TEST_F(MmioBusTest, OverlappingWindowsAreRefused) {
  const auto done = bus_.map(GuestRange::fixed(0x8fff, 2), "third", lower_, mutex_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::kExists);
}

}  // namespace
}  // namespace tandem::devices
