// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/receive_options.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

Result<ReceiveRequest> parse(Words words) {
  auto parsed = TANDEM_TRY(parse_receive_command(std::move(words)));
  return std::get<ReceiveRequest>(std::move(parsed));
}

std::string error_of(Words words) {
  const auto request = parse(std::move(words));
  return request ? "no error" : request.error().message();
}

TEST(ReceiveOptionsTest, AnAddressIsEnough) {
  const auto request = parse({"tcp:[::1]:4000"});
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->address.kind, migration::MigrationAddress::Kind::kTcp);
  EXPECT_EQ(request->address.port, 4000);
  EXPECT_EQ(request->names, HostNames{});
}

TEST(ReceiveOptionsTest, NamesWhatTheMachineIsConnectedTo) {
  const auto request = parse({"unix:/r", "--name", "n", "--disk", "a=/x", "--net", "net0=tap=tap1", "--vsock", "/v",
                              "--console", "pty", "--hvc", "none", "--log-level", "warn"});
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_EQ(request->names, (HostNames{.name = "n",
                                       .disks = {{"a", "/x"}},
                                       .taps = {{"net0", "tap1"}},
                                       .vsock = "/v",
                                       .console = ConsoleSpec{.kind = ConsoleSpec::Kind::kPty, .path = {}},
                                       .hvc = ConsoleSpec{.kind = ConsoleSpec::Kind::kNone, .path = {}}}));
  EXPECT_EQ(request->log_level, log::Level::kWarn);
}

TEST(ReceiveOptionsTest, HelpIsShownOnRequest) {
  const auto parsed = parse_receive_command({"--help"});
  ASSERT_TRUE(parsed);
  EXPECT_NE(std::get<std::string>(*parsed).find("ADDR"), std::string::npos);
}

TEST(ReceiveOptionsTest, UsageErrorsAreOneLine) {
  EXPECT_EQ(error_of({}), "an address is needed: unix:PATH, tcp:HOST:PORT or fd:N");
  EXPECT_EQ(error_of({"/r"}), "'/r' is no address: unix:PATH, tcp:HOST:PORT or fd:N is due");
  EXPECT_EQ(error_of({"unix:/r", "--disk", "x"}), "--disk: 'x' is not of the form ID=PATH");
  EXPECT_EQ(error_of({"unix:/r", "--log-level", "loud"}),
            "--log-level: 'loud' is none of debug, info, warn, error and off");
}

}  // namespace
}  // namespace tandem::cli
