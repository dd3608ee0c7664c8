// SPDX-License-Identifier: Apache-2.0
#include "pv/host/kernel_vcpu_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace tandem::pv {
namespace {

/// A kernel that remembers what it was told.
class FakeKernelRecords final : public KernelRecords {
 public:
  [[nodiscard]] bool can_be_kept() const override { return able; }
  Result<void> place(GuestAddr base) override {
    placed = base;
    return {};
  }
  Result<void> keep(unsigned vcpu, bool is_kept) override {
    if (!has_memory) {
      return fail(Errc::kOutOfMemory, "no memory");
    }
    if (is_kept) {
      kept.insert(vcpu);
    } else {
      kept.erase(vcpu);
    }
    return {};
  }

  bool able = true;
  bool has_memory = true;
  std::optional<GuestAddr> placed;
  std::set<unsigned> kept;
};

TEST(KernelVcpuStateTest, KernelWithoutRecordsIsRefused) {
  FakeKernelRecords records;
  records.able = false;
  const auto made = KernelVcpuState::create(records);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::kUnsupported);
  EXPECT_EQ(made.error().message(), "this host's KVM keeps no records");
}

TEST(KernelVcpuStateTest, ItsRegionIsZeroWholePagesAndWritable) {
  FakeKernelRecords records;
  const auto backend = KernelVcpuState::create(records).value();
  const std::span<std::byte> region = backend->region();
  EXPECT_EQ(region.size(), kVcpuStateRegionBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(region.data()) % host_page_size(), 0U);
  EXPECT_TRUE(std::ranges::all_of(region, [](std::byte byte) { return byte == std::byte{0}; }));
  std::memset(region.data(), 1, region.size());  // as the kernel does, with this process's rights
}

TEST(KernelVcpuStateTest, ToldOfThePlaceAndOfEachActiveVcpuTheKernelKeepsThoseRecords) {
  FakeKernelRecords records;
  const auto backend = KernelVcpuState::create(records).value();
  EXPECT_EQ(records.placed, std::nullopt);
  ASSERT_TRUE(backend->place_region(GuestAddr(0xb00'0000)));
  EXPECT_EQ(records.placed, GuestAddr(0xb00'0000));
  backend->activate(3);
  backend->activate(5);
  EXPECT_EQ(records.kept, (std::set<unsigned>{3, 5}));
  backend->deactivate(3);
  EXPECT_EQ(records.kept, (std::set<unsigned>{5}));
}

TEST(KernelVcpuStateTest, ThreadsMayComeAndGoWithoutAWordToTheKernel) {
  FakeKernelRecords records;
  const auto backend = KernelVcpuState::create(records).value();
  backend->activate(0);
  EXPECT_TRUE(backend->attach_thread(0));
  backend->detach_thread(0);
  EXPECT_EQ(records.kept, (std::set<unsigned>{0}));
}

TEST(KernelVcpuStateTest, ARecordThatTheKernelCannotKeepStaysZero) {
  FakeKernelRecords records;
  const auto backend = KernelVcpuState::create(records).value();
  records.has_memory = false;
  backend->activate(0);
  EXPECT_TRUE(std::ranges::all_of(backend->region(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(KernelVcpuStateTest, SaysWhatItReports) {
  FakeKernelRecords records;
  const auto backend = KernelVcpuState::create(records).value();
  EXPECT_EQ(backend->name(), "kernel");
  EXPECT_TRUE(backend->capabilities().reports_preemption);
  EXPECT_FALSE(backend->capabilities().reports_in_vmm_code);
  EXPECT_FALSE(backend->capabilities().needs_no_halt_polling);
}

}  // namespace
}  // namespace tandem::pv
