// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/boot_layout.hpp"

#include <gtest/gtest.h>

#include "vmm/lib/bits/bits.hpp"

namespace tandem::boot {
namespace {

constexpr uint64_t kBase = 0x4000'0000;
constexpr uint64_t kMiB = 1U << 20;
constexpr uint64_t kGiB = 1U << 30;

GuestRange ram_of(uint64_t size_bytes) { return GuestRange::create(GuestAddr(kBase), size_bytes).value(); }

BootSizes with_kernel(uint64_t footprint_bytes) {
  return {.text_offset = 0, .kernel_footprint_bytes = footprint_bytes, .initrd_bytes = 0, .fdt_bytes = 64U << 10};
}

BootSizes with_initrd(uint64_t initrd_bytes) {
  BootSizes sizes = with_kernel(40 * kMiB);
  sizes.initrd_bytes = initrd_bytes;
  return sizes;
}

BootSizes with_text_offset(uint64_t text_offset) {
  BootSizes sizes = with_initrd(kMiB);
  sizes.text_offset = text_offset;
  return sizes;
}

/// Fills 48 MiB to the byte if `initrd_bytes` is 6 MiB.
BootSizes filling(uint64_t initrd_bytes) {
  BootSizes sizes = with_initrd(initrd_bytes);
  sizes.fdt_bytes = kMaxFdtBytes;
  return sizes;
}

struct Case {
  const char* name;
  uint64_t ram_bytes;
  BootSizes sizes;
};

class BootLayoutTest : public testing::TestWithParam<Case> {};

/// What booting.rst asks for, and what any layout must keep to.
TEST_P(BootLayoutTest, EveryRuleOfTheBootProtocolHolds) {
  const GuestRange ram = ram_of(GetParam().ram_bytes);
  const BootSizes& sizes = GetParam().sizes;
  const auto layout = place_boot_parts(ram, sizes);
  ASSERT_TRUE(layout) << layout.error().message();

  const uint64_t kernel = layout->kernel.base().value();
  EXPECT_TRUE(ram.contains(layout->kernel));
  EXPECT_EQ(layout->kernel.size(), sizes.kernel_footprint_bytes);
  EXPECT_TRUE(is_aligned(kernel - sizes.text_offset, 2 * kMiB));

  const GuestRange fdt = layout->fdt;
  EXPECT_TRUE(ram.contains(fdt));
  EXPECT_EQ(fdt.size(), sizes.fdt_bytes);
  EXPECT_TRUE(is_aligned(fdt.base().value(), 8));
  EXPECT_EQ(fdt.base().value() / (2 * kMiB), fdt.last().value() / (2 * kMiB));
  EXPECT_LT(fdt.last().value() - (kernel - sizes.text_offset), 512 * kMiB);
  EXPECT_FALSE(fdt.overlaps(layout->kernel));

  ASSERT_EQ(layout->initrd.has_value(), sizes.initrd_bytes != 0);
  const GuestRange initrd = layout->initrd.value_or(ram);
  EXPECT_TRUE(ram.contains(initrd));
  EXPECT_TRUE(is_aligned(initrd.base().value(), 64U << 10));
  EXPECT_FALSE(layout->initrd && initrd.size() != sizes.initrd_bytes);
  EXPECT_FALSE(layout->initrd && initrd.overlaps(layout->kernel));
  EXPECT_FALSE(layout->initrd && initrd.overlaps(fdt));
  EXPECT_FALSE(layout->initrd && initrd.last().value() - align_down(kernel, kGiB) >= 32 * kGiB);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, BootLayoutTest,
    testing::Values(
        Case{"Ram32M", 32 * kMiB, with_kernel(30 * kMiB)}, Case{"Ram48MFullToTheByte", 48 * kMiB, filling(6 * kMiB)},
        Case{"Ram128M", 128 * kMiB, with_initrd(5 * kMiB + 1)}, Case{"Ram512M", 512 * kMiB, with_initrd(5 * kMiB + 1)},
        Case{"Ram514M", 514 * kMiB, with_initrd(5 * kMiB + 1)}, Case{"Ram1G", kGiB, with_initrd(5 * kMiB + 1)},
        Case{"Ram400G", 400 * kGiB, with_initrd(5 * kMiB + 1)}, Case{"WithoutInitrd", kGiB, with_initrd(0)},
        Case{"InitrdOfOneByte", kGiB, with_initrd(1)},
        Case{"InitrdBelowTheTreeToTheByte", kGiB, with_initrd(472 * kMiB - (64U << 10))},
        Case{"InitrdAboveTheTree", kGiB, with_initrd(472 * kMiB - (64U << 10) + 1)},
        Case{"InitrdOf31G", 64 * kGiB, with_initrd(31 * kGiB)},
        Case{"OldTextOffset", 128 * kMiB, with_text_offset(0x80000)},
        Case{"LargeTextOffset", kGiB, with_text_offset(0x380000)}),
    [](const auto& row) { return row.param.name; });

class BootLayoutErrorTest : public testing::TestWithParam<Case> {};

TEST_P(BootLayoutErrorTest, WhatDoesNotFitIsRefused) {
  const auto layout = place_boot_parts(ram_of(GetParam().ram_bytes), GetParam().sizes);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code(), Errc::kOutOfRange);
}

BootSizes with_fdt(uint64_t fdt_bytes) {
  BootSizes sizes = with_kernel(kMiB);
  sizes.fdt_bytes = fdt_bytes;
  return sizes;
}

INSTANTIATE_TEST_SUITE_P(Sizes, BootLayoutErrorTest,
                         testing::Values(Case{"KernelOfAllRam", 32 * kMiB, with_kernel(32 * kMiB)},
                                         Case{"KernelOneByteTooLong", 32 * kMiB,
                                              with_kernel(32 * kMiB - (64U << 10) + 1)},
                                         Case{"KernelCoversTheWindowOfTheTree", kGiB, with_kernel(512 * kMiB)},
                                         Case{"KernelOfEverything", kGiB, with_kernel(UINT64_MAX)},
                                         Case{"KernelOfNothing", kGiB, with_kernel(0)},
                                         Case{"TextOffsetWraps", kGiB, with_text_offset(UINT64_MAX - kBase + 1)},
                                         Case{"TextOffsetIsTheLastAddress", kGiB, with_text_offset(UINT64_MAX - kBase)},
                                         Case{"InitrdOfAllRam", kGiB, with_initrd(kGiB)},
                                         Case{"InitrdOneByteTooLong", 48 * kMiB, filling(6 * kMiB + 1)},
                                         Case{"InitrdBeyondItsWindow", 64 * kGiB, with_initrd(32 * kGiB)},
                                         Case{"InitrdOfEverything", kGiB, with_initrd(UINT64_MAX)},
                                         Case{"TreeTooLong", kGiB, with_fdt(2 * kMiB + 1)}),
                         [](const auto& row) { return row.param.name; });

TEST(BootLayoutMessageTest, TheSizesAreNamed) {
  BootSizes sizes = with_kernel(30 * kMiB + (150U << 10));
  sizes.initrd_bytes = 4 * kMiB;
  EXPECT_EQ(place_boot_parts(ram_of(32 * kMiB), sizes).error().message(),
            "kernel (30.1 MiB with its BSS), initrd (4 MiB) and device tree do not fit into 32 MiB of RAM");
}

TEST(BootLayoutMessageTest, AnInitrdThatIsNotThereIsNotNamed) {
  EXPECT_EQ(place_boot_parts(ram_of(32 * kMiB), with_kernel(33 * kMiB)).error().message(),
            "kernel (33 MiB with its BSS) and device tree do not fit into 32 MiB of RAM");
}

TEST(BootRegistersTest, TheKernelIsEnteredAtItsBaseWithTheTreeInX0) {
  const auto layout = place_boot_parts(ram_of(kGiB), with_text_offset(0x80000));
  ASSERT_TRUE(layout);
  const BootRegisters registers = boot_registers(*layout);
  EXPECT_EQ(registers.pc, kBase + 0x80000);
  EXPECT_EQ(registers.x0, kBase + 512 * kMiB - (64U << 10));
}

}  // namespace
}  // namespace tandem::boot
