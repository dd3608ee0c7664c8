// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/cpu_fit.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace tandem::boot {
namespace {

// Values of ID_AA64MMFR0_EL1.
constexpr uint64_t kEverything = 0x00100100;  // 4, 16 and 64 KiB; mixed-endian
constexpr uint64_t kNo16k = 0x00001124;       // a Cortex-A72
constexpr uint64_t kNo64k = 0x0f100100;
constexpr uint64_t kNo4k = 0xf0100100;
constexpr uint64_t kWith52Bits = 0x10200100;  // 4 and 16 KiB pages with 52-bit addresses
constexpr uint64_t kLittleEndian = 0x00100000;
constexpr uint64_t kBigEndianEl0Only = 0x00110000;

struct FitCase {
  std::string name;
  Arm64ImageHeader kernel;
  uint64_t id_aa64mmfr0;
  std::string refusal = {};  ///< Empty: accepted.
};

std::ostream& operator<<(std::ostream& out, const FitCase& row) { return out << row.name; }

class CpuFitTest : public testing::TestWithParam<FitCase> {};

TEST_P(CpuFitTest, AKernelIsAcceptedExactlyIfTheCpuHasWhatItsHeaderAsksFor) {
  const FitCase& row = GetParam();
  const auto fits = require_cpu_fits(row.kernel, row.id_aa64mmfr0);
  EXPECT_EQ(fits.has_value(), row.refusal.empty());
  EXPECT_EQ(fits ? "" : fits.error().message(), row.refusal);
}

const FitCase kCases[] = {
    {.name = "FourKiB", .kernel = {.page_kib = 4}, .id_aa64mmfr0 = kEverything},
    {.name = "SixteenKiB", .kernel = {.page_kib = 16}, .id_aa64mmfr0 = kEverything},
    {.name = "SixtyFourKiB", .kernel = {.page_kib = 64}, .id_aa64mmfr0 = kEverything},
    {.name = "FourKiBWith52Bits", .kernel = {.page_kib = 4}, .id_aa64mmfr0 = kWith52Bits},
    {.name = "SixteenKiBWith52Bits", .kernel = {.page_kib = 16}, .id_aa64mmfr0 = kWith52Bits},
    {.name = "FourKiBOnACpuWithoutSixteen", .kernel = {.page_kib = 4}, .id_aa64mmfr0 = kNo16k},
    {.name = "SixtyFourKiBOnACpuWithoutSixteen", .kernel = {.page_kib = 64}, .id_aa64mmfr0 = kNo16k},
    {.name = "APageSizeNotSaidIsBelieved", .kernel = {.page_kib = 0}, .id_aa64mmfr0 = kNo4k},
    {.name = "FourKiBLacking",
     .kernel = {.page_kib = 4},
     .id_aa64mmfr0 = kNo4k,
     .refusal = "it was built for pages of 4 KiB, which this host's CPU does not have"},
    {.name = "SixteenKiBLacking",
     .kernel = {.page_kib = 16},
     .id_aa64mmfr0 = kNo16k,
     .refusal = "it was built for pages of 16 KiB, which this host's CPU does not have"},
    {.name = "SixtyFourKiBLacking",
     .kernel = {.page_kib = 64},
     .id_aa64mmfr0 = kNo64k,
     .refusal = "it was built for pages of 64 KiB, which this host's CPU does not have"},
    {.name = "BigEndian", .kernel = {.big_endian = true, .page_kib = 4}, .id_aa64mmfr0 = kEverything},
    {.name = "BigEndianLacking",
     .kernel = {.big_endian = true, .page_kib = 4},
     .id_aa64mmfr0 = kLittleEndian,
     .refusal = "it is big-endian, which this host's CPU cannot be"},
    {.name = "BigEndianAtEl0IsNotEnough",
     .kernel = {.big_endian = true, .page_kib = 4},
     .id_aa64mmfr0 = kBigEndianEl0Only,
     .refusal = "it is big-endian, which this host's CPU cannot be"},
    {.name = "LittleEndianOnACpuWithoutBig", .kernel = {.page_kib = 4}, .id_aa64mmfr0 = kLittleEndian},
};

std::string name_of(const testing::TestParamInfo<FitCase>& row) { return row.param.name; }

INSTANTIATE_TEST_SUITE_P(Headers, CpuFitTest, testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace tandem::boot
