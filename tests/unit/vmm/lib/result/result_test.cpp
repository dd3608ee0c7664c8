// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/result/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tandem {
namespace {

Result<std::unique_ptr<int>> make(bool good) {
  if (!good) {
    return fail(Errc::kNotFound, "no number {}", 7);
  }
  return std::make_unique<int>(7);
}

Result<int> use(bool good) {
  const std::unique_ptr<int> number = TANDEM_TRY(make(good));
  return *number;
}

TEST(ResultTest, TryYieldsAMoveOnlyValue) { EXPECT_EQ(use(true).value(), 7); }

TEST(ResultTest, TryReturnsTheErrorOfTheExpression) {
  const auto result = use(false);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::kNotFound);
  EXPECT_EQ(result.error().message(), "no number 7");
}

TEST(ErrorTest, ErrnoGivesKindAndText) {
  const Error error = Error::from_errno("open disk.img", EACCES);
  EXPECT_EQ(error.code(), Errc::kPermission);
  EXPECT_EQ(error.os_error(), EACCES);
  EXPECT_EQ(error.message(), "open disk.img: Permission denied");
}

TEST(ErrorTest, ContextsStandOutermostFirst) {
  const Error error = Error(Errc::kIo, "cause").context("inner").context("outer");
  EXPECT_EQ(error.message(), "outer: inner: cause");
}

TEST(AssertDeathTest, AFailedAssertionSaysWhyAndAborts) {
  EXPECT_DEATH(TANDEM_ASSERT(1 == 2, "numbers differ"), "assertion failed: 1 == 2 \\(numbers differ\\)");
}

}  // namespace
}  // namespace tandem
