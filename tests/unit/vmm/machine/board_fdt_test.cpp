// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/board_fdt.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "vmm/machine/board_layout.hpp"
#include "vmm/machine/machine_spec.hpp"

namespace tandem::board {
namespace {

using devices::FdtNode;

FdtInputs inputs(std::vector<uint64_t> mpidrs, bool gic_v3) {
  return {.mpidrs = std::move(mpidrs),
          .gic_v3 = gic_v3,
          .its = gic_v3,
          .pmu = false,
          .ram = GuestRange::fixed(0x4000'0000, 0x1000'0000)};
}

const FdtNode& child(const FdtNode& node, std::string_view name) {
  const auto it = std::ranges::find_if(node.children(), [&](const FdtNode& c) { return c.name().starts_with(name); });
  EXPECT_NE(it, node.children().end()) << name;
  return *it;
}

uint32_t cell(const FdtNode& node, std::string_view property, size_t index) {
  const auto& value = node.find(property)->value;
  uint32_t result = 0;
  for (size_t byte = 0; byte < 4; ++byte) {
    result = (result << 8) | std::to_integer<uint32_t>(value.at(4 * index + byte));
  }
  return result;
}

TEST(BoardFdtTest, CpuRegIsTheMpidrAffinity) {
  const FdtNode root = root_node(inputs({0x0, 0x1'00000201}, true));
  const FdtNode& cpus = child(root, "cpus");
  ASSERT_EQ(cpus.children().size(), 2U);
  EXPECT_EQ(cell(cpus.children()[1], "reg", 0), 1U);
  EXPECT_EQ(cell(cpus.children()[1], "reg", 1), 0x201U);
}

TEST(BoardFdtTest, TimerHasItsFourInterruptsInOrderAndLevelLow) {
  const FdtNode root = root_node(inputs({0}, true));
  const FdtNode& timer = child(root, "timer");
  const std::array<uint32_t, 4> expected{13, 14, 11, 10};
  for (size_t index = 0; index < expected.size(); ++index) {
    EXPECT_EQ(cell(timer, "interrupts", 3 * index), 1U);
    EXPECT_EQ(cell(timer, "interrupts", 3 * index + 1), expected.at(index));
    EXPECT_EQ(cell(timer, "interrupts", 3 * index + 2), 8U);
  }
}

TEST(BoardFdtTest, AGicV2HasTheCpuMaskInPpisAndNoIts) {
  const FdtNode root = root_node(inputs({0, 1, 2}, false));
  EXPECT_EQ(cell(child(root, "timer"), "interrupts", 2), 0x708U);
  EXPECT_TRUE(child(root, "interrupt-controller").children().empty());
}

TEST(BoardFdtTest, RedistributorsCoverEveryVcpu) {
  const FdtNode root = root_node(inputs(std::vector<uint64_t>(kMaxVcpus), true));
  EXPECT_EQ(cell(child(root, "interrupt-controller"), "reg", 7), kMaxVcpus * 0x20000U);
}

TEST(BoardLayoutTest, NothingOverlaps) {
  std::vector<GuestRange> windows{kGicd,
                                  kGicc,
                                  kGits,
                                  kUart,
                                  kRtc,
                                  kGpio,
                                  kPvpanic,
                                  kPvTime,
                                  gicr(kMaxVcpus),
                                  kPvVcpuState,
                                  GuestRange::fixed(kRamBase.value(), 1)};
  for (unsigned slot = 0; slot < kVirtioSlots; ++slot) {
    windows.push_back(virtio_window(slot));
  }
  for (size_t one = 0; one < windows.size(); ++one) {
    for (size_t other = one + 1; other < windows.size(); ++other) {
      EXPECT_FALSE(windows[one].overlaps(windows[other])) << one << " " << other;
    }
  }
}

TEST(BoardLayoutTest, TheRedistributorsOf512VcpusEndBelowTheWindowReservedForPcie) {
  EXPECT_LT(gicr(kMaxVcpus).last().value(), 0x1800'0000U);
}

}  // namespace
}  // namespace tandem::board
