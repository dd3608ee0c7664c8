// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/restore_options.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

Result<RestoreRequest> parse(Words words) {
  auto parsed = TANDEM_TRY(parse_restore_command(std::move(words)));
  return std::get<RestoreRequest>(std::move(parsed));
}

std::string error_of(Words words) {
  const auto request = parse(std::move(words));
  return request ? "no error" : request.error().message();
}

TEST(RestoreOptionsTest, TheDirectoryIsEnough) {
  EXPECT_EQ(parse({"/snap"}).value(), RestoreRequest{.directory = "/snap"});
}

TEST(RestoreOptionsTest, EveryOptionIsUnderstood) {
  const auto request =
      parse({"snap",      "/bases", "--name", "clone", "--paused",    "--eager",       "--clock", "freeze",
             "--disk",    "a=/x",   "--disk", "b=/y",  "--net",       "net0=tap=tap1", "--vsock", "/v",
             "--console", "none",   "--hvc",  "pty",   "--log-level", "warn"});
  ASSERT_TRUE(request) << request.error().message();
  const RestoreRequest expected{.directory = "snap",
                                .base_places = {"/bases"},
                                .names = {.name = "clone",
                                          .disks = {{"a", "/x"}, {"b", "/y"}},
                                          .taps = {{"net0", "tap1"}},
                                          .vsock = "/v",
                                          .console = ConsoleSpec{.kind = ConsoleSpec::Kind::kNone, .path = {}},
                                          .hvc = ConsoleSpec{.kind = ConsoleSpec::Kind::kPty, .path = {}}},
                                .paused = true,
                                .eager = true,
                                .freeze_clock = true,
                                .log_level = log::Level::kWarn};
  EXPECT_EQ(*request, expected);
}

TEST(RestoreOptionsTest, HelpIsShownOnRequest) {
  const auto parsed = parse_restore_command({"--help"});
  ASSERT_TRUE(parsed);
  EXPECT_NE(std::get<std::string>(*parsed).find("--eager"), std::string::npos);
}

TEST(RestoreOptionsTest, UsageErrorsAreOneLine) {
  EXPECT_EQ(error_of({}), "the directory of a snapshot is needed");
  EXPECT_EQ(error_of({""}), "the directory of a snapshot is needed");
  EXPECT_EQ(error_of({"/s", "--clock", "sun"}), "--clock: 'sun' is neither wall nor freeze");
  EXPECT_EQ(error_of({"/s", "--disk", "x"}), "--disk: 'x' is not of the form ID=PATH");
  EXPECT_EQ(error_of({"/s", "--console", "tty"}),
            "--console: 'tty' is none of stdio, pty, file=PATH, socket=PATH and none");
  EXPECT_EQ(error_of({"/s", "--log-level", "loud"}), "--log-level: 'loud' is none of debug, info, warn, error and off");
  EXPECT_NE(error_of({"/s", "--name", "a/b"}).find("--name: 'a/b'"), std::string::npos);
  EXPECT_NE(error_of({"/s", "--wings"}), "no error");
}

}  // namespace
}  // namespace tandem::cli
