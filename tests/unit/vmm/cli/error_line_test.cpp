// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/error_line.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

TEST(ErrorLineTest, AMessageIsOneLine) { EXPECT_EQ(error_line("run: no"), "tandem: run: no\n"); }

TEST(ErrorLineTest, ControlCharactersOfAPathAreEscaped) {
  EXPECT_EQ(error_line("kernel a\nb\x1b[2J\x7f"), "tandem: kernel a\\x0ab\\x1b[2J\\x7f\n");
}

TEST(ErrorLineTest, ControlCharactersOfTwoBytesAreEscaped) {
  EXPECT_EQ(error_line("key \xc2\x9b"
                       "2J\xc2\xa0\xc2"),
            "tandem: key \\xc2\\x9b2J\xc2\xa0\xc2\n");
}

TEST(ErrorLineTest, OtherCharactersStay) { EXPECT_EQ(error_line("caf\xc3\xa9"), "tandem: caf\xc3\xa9\n"); }

TEST(InQuotesTest, ShortTextIsShownWhole) { EXPECT_EQ(in_quotes("two"), "'two'"); }

TEST(InQuotesTest, LongTextIsCut) { EXPECT_EQ(in_quotes(std::string(65536, 'x')), "'" + std::string(60, 'x') + "…'"); }

TEST(InQuotesTest, ACharacterIsNotCutInTwo) {
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "\xc3\xa9\xc3\xa9"), "'" + std::string(59, 'x') + "…'");
}

}  // namespace
}  // namespace tandem::cli
