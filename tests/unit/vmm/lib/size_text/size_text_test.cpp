// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/size_text/size_text.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

struct GoodSize {
  const char* name;
  const char* text;
  uint64_t size_bytes;
};

class ParseSizeTest : public testing::TestWithParam<GoodSize> {};

TEST_P(ParseSizeTest, TextGivesBytes) { EXPECT_EQ(parse_size(GetParam().text).value(), GetParam().size_bytes); }

INSTANTIATE_TEST_SUITE_P(Sizes, ParseSizeTest,
                         testing::Values(GoodSize{"Zero", "0", 0}, GoodSize{"Bytes", "4096", 4096},
                                         GoodSize{"Kibi", "64K", 65536}, GoodSize{"Mebi", "512M", 512U << 20},
                                         GoodSize{"Gibi", "3G", uint64_t{3} << 30},
                                         GoodSize{"LowerCase", "512m", 512U << 20},
                                         GoodSize{"LeadingZeros", "007k", 7168},
                                         GoodSize{"MostBytes", "18446744073709551615", UINT64_MAX},
                                         GoodSize{"MostMebi", "17592186044415M", 17592186044415ULL << 20}),
                         [](const auto& row) { return row.param.name; });

struct BadSize {
  const char* name;
  const char* text;
  Errc code;
};

class ParseSizeErrorTest : public testing::TestWithParam<BadSize> {};

TEST_P(ParseSizeErrorTest, TextIsRefused) {
  const auto result = parse_size(GetParam().text);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), GetParam().code);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ParseSizeErrorTest,
    testing::Values(BadSize{"Empty", "", Errc::kInvalidArgument}, BadSize{"OnlySuffix", "M", Errc::kInvalidArgument},
                    BadSize{"Fraction", "1.5G", Errc::kInvalidArgument},
                    BadSize{"Hex", "0x20M", Errc::kInvalidArgument}, BadSize{"Negative", "-1", Errc::kInvalidArgument},
                    BadSize{"Plus", "+1", Errc::kInvalidArgument}, BadSize{"Space", "1 M", Errc::kInvalidArgument},
                    BadSize{"Leading", " 1M", Errc::kInvalidArgument},
                    BadSize{"TwoSuffixes", "1MM", Errc::kInvalidArgument},
                    BadSize{"OtherSuffix", "1T", Errc::kInvalidArgument},
                    BadSize{"BinarySuffix", "1MiB", Errc::kInvalidArgument},
                    BadSize{"TooManyBytes", "18446744073709551616", Errc::kOutOfRange},
                    BadSize{"TooManyBytesAndRubbish", "18446744073709551616x", Errc::kInvalidArgument},
                    BadSize{"TooManyMebi", "18446744073709551615M", Errc::kOutOfRange},
                    BadSize{"ExactlyTwoTo64", "17592186044416M", Errc::kOutOfRange}),
    [](const auto& row) { return row.param.name; });

TEST(FormatSizeTest, BelowOneKibiAreBytes) { EXPECT_EQ(format_size(1023), "1023 bytes"); }
TEST(FormatSizeTest, WholeNumbersHaveNoDecimal) { EXPECT_EQ(format_size(64U << 10), "64 KiB"); }
TEST(FormatSizeTest, OneDecimalRoundedDown) { EXPECT_EQ(format_size((30U << 20) + (199U << 10)), "30.1 MiB"); }
TEST(FormatSizeTest, LargestNumber) { EXPECT_EQ(format_size(UINT64_MAX), "17179869183.9 GiB"); }

}  // namespace
}  // namespace tandem
