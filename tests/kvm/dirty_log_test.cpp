// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_dirty_log.hpp"

#include <gtest/gtest.h>

#include "tests/kvm/test_vm.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"

namespace tandem::tests {
namespace {

class KvmDirtyLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = KvmDirtyLog::create(vm_.vm(), TestVm::kRam);
    ASSERT_TRUE(created) << created.error().message();
    guest_ = *std::move(created);
    log_.emplace(vm_.memory(), *guest_, TestVm::kRam, host_page_size());
  }
  static GuestAddr at(uint64_t offset) { return GuestAddr(TestVm::kRam.base().value() + offset); }
  bool has(const DirtyBitmap& written, uint64_t offset) const { return written.is_marked(offset / host_page_size()); }
  DirtyBitmap collect(RamWriteLog::Reader& reader) {
    DirtyBitmap written = log_->make_bitmap();
    const auto done = reader.collect(written);
    EXPECT_TRUE(done) << done.error().message();
    return written;
  }
  void guest_stores(uint64_t offset) {
    const auto done = vm_.poke(std::array{Poke{at(offset).value(), 1, 8}});
    ASSERT_TRUE(done) << done.error().message();
  }

  TestVm vm_{1, {}};
  std::unique_ptr<KvmDirtyLog> guest_;
  std::optional<RamWriteLog> log_;
};

TEST_F(KvmDirtyLogTest, NothingIsWrittenAtFirst) {
  guest_stores(0x100000);
  auto reader = log_->open();
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(collect(**reader).count(), 0U);
}

TEST_F(KvmDirtyLogTest, StoresOfTheGuestAndOfTheVmmAreThereOnce) {
  auto reader = log_->open();
  ASSERT_TRUE(reader) << reader.error().message();
  guest_stores(0x200000);
  ASSERT_TRUE(vm_.memory().write_value(at(0x300000), uint64_t{1}));
  const DirtyBitmap written = collect(**reader);
  EXPECT_TRUE(has(written, 0x200000));
  EXPECT_TRUE(has(written, 0x300000));
  EXPECT_LE(written.count(), 4U);  // these, code, and its list
  EXPECT_EQ(collect(**reader).count(), 0U);
}

TEST_F(KvmDirtyLogTest, AStoreAfterAnotherIsSeenAgain) {
  auto reader = log_->open();
  ASSERT_TRUE(reader) << reader.error().message();
  guest_stores(0x200000);
  ASSERT_TRUE(has(collect(**reader), 0x200000));
  guest_stores(0x200000);
  EXPECT_TRUE(has(collect(**reader), 0x200000));
}

TEST_F(KvmDirtyLogTest, TheLogCanBeTurnedOffAndOnAgain) {
  auto reader = log_->open();
  ASSERT_TRUE(reader) << reader.error().message();
  guest_stores(0x200000);
  reader->reset();
  guest_stores(0x300000);
  reader = log_->open();
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(collect(**reader).count(), 0U);
  guest_stores(0x400000);
  EXPECT_TRUE(has(collect(**reader), 0x400000));
}

}  // namespace
}  // namespace tandem::tests
