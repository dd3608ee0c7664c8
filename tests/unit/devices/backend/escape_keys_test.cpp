// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/escape_keys.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tandem::devices {
namespace {

class EscapeKeysTest : public ::testing::Test {
 protected:
  std::string type(std::string keys) {
    keys.resize(escape_.take(std::as_writable_bytes(std::span(keys))));
    return keys;
  }
  int quits_ = 0;
  int helps_ = 0;
  EscapeKeys escape_{{.quit = [this] { ++quits_; }, .show_keys = [this] { ++helps_; }}};
};

TEST_F(EscapeKeysTest, OtherKeysPassUnchanged) {
  EXPECT_EQ(type("ls\r\x03\x1b[A"), "ls\r\x03\x1b[A");
  EXPECT_EQ(quits_ + helps_, 0);
}

TEST_F(EscapeKeysTest, CtrlAThenXAsksForTheEnd) {
  EXPECT_EQ(type("a\x01xb"), "ab");
  EXPECT_EQ(quits_, 1);
}

TEST_F(EscapeKeysTest, CtrlAThenHShowsTheKeys) {
  EXPECT_EQ(type("\x01h"), "");
  EXPECT_EQ(helps_, 1);
}

TEST_F(EscapeKeysTest, CtrlATwiceOrWithASendsIt) {
  EXPECT_EQ(type("\x01\x01"), "\x01");
  EXPECT_EQ(type("\x01"
                 "a"),
            "\x01");
}

TEST_F(EscapeKeysTest, AKeyWithoutMeaningIsForTheGuest) { EXPECT_EQ(type("\x01q"), "q"); }

TEST_F(EscapeKeysTest, TheTwoKeysMayComeApart) {
  EXPECT_EQ(type("\x01"), "");
  EXPECT_EQ(type("x"), "");
  EXPECT_EQ(quits_, 1);
}

}  // namespace
}  // namespace tandem::devices
