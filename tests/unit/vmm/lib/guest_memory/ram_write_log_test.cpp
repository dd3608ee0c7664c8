// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/ram_write_log.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/fakes/fake_guest_write_log.hpp"

namespace tandem {
namespace {

constexpr size_t kPage = 256;
constexpr auto kRam = GuestRange::fixed(0x1000, 0x1000);

class RamWriteLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<RamWriteLog::Reader> open() {
    auto reader = log_.open();
    EXPECT_TRUE(reader);
    return std::move(*reader);
  }
  std::vector<size_t> collect(RamWriteLog::Reader& reader) {
    DirtyBitmap written = log_.make_bitmap();
    EXPECT_TRUE(reader.collect(written));
    std::vector<size_t> pages;
    for (size_t page = 0; page < written.page_count(); ++page) {
      if (written.is_marked(page)) {
        pages.push_back(page);
      }
    }
    return pages;
  }
  void guest_writes(size_t page) { guest_.written.mark(PageRun{page, 1}); }
  void host_writes(size_t page) { EXPECT_TRUE(memory_.write_value(GuestAddr(0x1000 + page * kPage), uint8_t{1})); }
  using Pages = std::vector<size_t>;

  std::array<std::byte, 0x1000> bytes_{};
  GuestMemory memory_{{{kRam, bytes_}}};
  FakeGuestWriteLog guest_{DirtyBitmap(kRam, kPage)};
  RamWriteLog log_{memory_, guest_, kRam, kPage};
};

TEST_F(RamWriteLogTest, LoggingIsOnWhileThereIsAReader) {
  EXPECT_FALSE(guest_.is_on || memory_.logs_writes());
  auto reader = open();
  auto other = open();
  EXPECT_TRUE(guest_.is_on && memory_.logs_writes());
  reader.reset();
  EXPECT_TRUE(guest_.is_on && memory_.logs_writes());
  other.reset();
  EXPECT_FALSE(guest_.is_on || memory_.logs_writes());
}

TEST_F(RamWriteLogTest, AReaderSeesWhatTheGuestAndTheHostWroteOnce) {
  const auto reader = open();
  guest_writes(3);
  host_writes(5);
  EXPECT_EQ(collect(*reader), (Pages{3, 5}));
  EXPECT_EQ(collect(*reader), Pages{});
}

TEST_F(RamWriteLogTest, EachReaderSeesEveryWrite) {
  const auto first = open();
  const auto second = open();
  guest_writes(3);
  EXPECT_EQ(collect(*first), Pages{3});
  host_writes(4);
  EXPECT_EQ(collect(*first), Pages{4});
  EXPECT_EQ(collect(*second), (Pages{3, 4}));
}

TEST_F(RamWriteLogTest, AReaderDoesNotSeeWhatWasWrittenBeforeIt) {
  const auto first = open();
  guest_writes(3);
  host_writes(4);
  const auto second = open();
  EXPECT_EQ(collect(*second), Pages{});
  EXPECT_EQ(collect(*first), (Pages{3, 4}));
}

TEST_F(RamWriteLogTest, ALogThatIsTurnedOnAgainHasNothingOfBefore) {
  auto reader = open();
  host_writes(1);
  reader.reset();
  host_writes(2);
  reader = open();
  EXPECT_EQ(collect(*reader), Pages{});
}

TEST_F(RamWriteLogTest, ALogThatCannotBeTurnedOnLogsNothing) {
  guest_.fails = true;
  const auto reader = log_.open();
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code(), Errc::kOutOfMemory);
  EXPECT_FALSE(memory_.logs_writes());
}

TEST_F(RamWriteLogTest, WhatCouldNotBeCollectedComesNextTime) {
  const auto reader = open();
  guest_writes(3);
  host_writes(4);
  guest_.fails = true;
  DirtyBitmap written = log_.make_bitmap();
  EXPECT_FALSE(reader->collect(written));
  guest_.fails = false;
  EXPECT_EQ(collect(*reader), (Pages{3, 4}));
}

}  // namespace
}  // namespace tandem
