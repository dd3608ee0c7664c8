// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/snapshot_options.hpp"

#include <gtest/gtest.h>

#include "vmm/cli/command_line.hpp"

namespace tandem::cli {
namespace {

using What = SnapshotRequest::What;

Result<Request> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "tandem");
  return parse_command_line(words);
}

std::string error_of(const std::vector<const char*>& words) {
  const auto request = parse(words);
  return request ? "none" : request.error().message();
}

TEST(SnapshotOptionsTest, VerifyTakesManyDirectories) {
  const auto request = parse({"verify", "a", "--json", "b"});
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<SnapshotRequest>(*request),
            (SnapshotRequest{.what = What::kVerify, .directories = {"a", "b"}, .json = true}));
}

TEST(SnapshotOptionsTest, InfoTakesOneDirectory) {
  const auto request = parse({"info", "a"});
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<SnapshotRequest>(*request), (SnapshotRequest{.what = What::kInfo, .directories = {"a"}}));
  EXPECT_EQ(error_of({"info", "a", "b"}), "info: nothing is expected at 'b' (see tandem info --help)");
}

TEST(SnapshotOptionsTest, ADirectoryIsNeeded) {
  EXPECT_EQ(error_of({"verify"}), "verify: the directory of a snapshot is needed (see tandem verify --help)");
}

TEST(SnapshotOptionsTest, AnUnknownOptionIsNamed) {
  EXPECT_EQ(error_of({"info", "a", "--xml"}), "info: unknown option '--xml' (see tandem info --help)");
}

TEST(SnapshotOptionsTest, HelpIsShown) {
  const auto request = parse({"verify", "--help"});
  ASSERT_TRUE(request);
  EXPECT_NE(std::get<TextRequest>(*request).text.find("--json"), std::string::npos);
}

}  // namespace
}  // namespace tandem::cli
