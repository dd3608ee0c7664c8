// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_options.hpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

VmRequest parsed(const std::string& command, Words words) {
  const auto request = parse_vm_command(command, std::move(words));
  EXPECT_TRUE(request) << request.error().message();
  return request ? std::get<VmRequest>(*request) : VmRequest{};
}

TEST(VmOptionsTest, ListTakesNoName) {
  EXPECT_EQ(parsed("list", {"--json"}), (VmRequest{.command = "list", .json = true}));
}

TEST(VmOptionsTest, OptionsStandBeforeAndBehindTheName) {
  const VmRequest expected{.command = "status", .name = "vm-1.a_b", .json = true};
  EXPECT_EQ(parsed("status", {"--json", "vm-1.a_b"}), expected);
  EXPECT_EQ(parsed("status", {"vm-1.a_b", "--json"}), expected);
}

TEST(VmOptionsTest, StopHasAForceAndATimeOut) {
  EXPECT_EQ(parsed("stop", {"v", "--force", "--timeout", "7"}),
            (VmRequest{.command = "stop", .name = "v", .force = true, .timeout = std::chrono::seconds(7)}));
}

TEST(VmOptionsTest, ABalloonHasASizeOrIsLookedAt) {
  EXPECT_EQ(parsed("balloon", {"v", "64M"}).target_bytes, 64U << 20);
  EXPECT_EQ(parsed("balloon", {"v", "0"}).target_bytes, 0U);
  EXPECT_FALSE(parsed("balloon", {"v"}).target_bytes);
}

TEST(VmOptionsTest, TheConsoleIsTheSerialPortUnlessTheOtherIsAskedFor) {
  EXPECT_EQ(parsed("console", {"v"}).device, "uart0");
  EXPECT_EQ(parsed("console", {"v", "--hvc"}).device, "hvc0");
}

TEST(VmOptionsTest, ASaveHasAPlaceAndSaysWhatBecomesOfWhatWasThere) {
  EXPECT_EQ(parsed("save", {"v", "/snap"}), (VmRequest{.command = "save", .name = "v", .directory = "/snap"}));
  EXPECT_EQ(parsed("save", {"v", "/snap", "--replace", "--stop"}),
            (VmRequest{.command = "save", .name = "v", .directory = "/snap", .replace = true, .stop = true}));
  EXPECT_EQ(parsed("save", {"v", "/snap", "--diff", "../base"}),
            (VmRequest{.command = "save", .name = "v", .directory = "/snap", .base = "../base"}));
  EXPECT_TRUE(parsed("save", {"v", "/snap", "--freeze"}).freeze);
  EXPECT_EQ(parse_vm_command("save", {"v", "/snap", "--diff", ""}).error().message(),
            "--diff: the directory of a snapshot is needed");
  EXPECT_EQ(parse_vm_command("save", {"v"}).error().message(), "the directory to be made is needed");
}

TEST(VmOptionsTest, AMigrationHasAnAddressAndWishes) {
  EXPECT_EQ(
      parsed("migrate", {"v", "unix:/run/r", "--downtime", "50", "--timeout", "7", "--verify", "--compress", "zstd"}),
      (VmRequest{.command = "migrate",
                 .name = "v",
                 .timeout = std::chrono::seconds(7),
                 .address = "unix:/run/r",
                 .downtime = std::chrono::milliseconds(50),
                 .verify = true,
                 .compress = true}));
  EXPECT_TRUE(parsed("migrate", {"v", "tcp:localhost:1", "--check"}).check);
}

TEST(VmOptionsTest, AMigrationUnderWayIsAskedForWithoutAnAddress) {
  EXPECT_EQ(parsed("migrate", {"v", "--status"}).of_migration, VmRequest::OfMigration::kStatus);
  EXPECT_EQ(parsed("migrate", {"v", "--cancel"}).of_migration, VmRequest::OfMigration::kCancel);
}

TEST(VmOptionsTest, HelpIsShownForEach) {
  for (const char* const command :
       {"list", "status", "pause", "resume", "reset", "stop", "balloon", "console", "save", "migrate"}) {
    const auto help = parse_vm_command(command, {"--help"});
    ASSERT_TRUE(help);
    EXPECT_NE(std::get<std::string>(*help).find(std::string("tandem ") + command), std::string::npos) << command;
  }
}

struct Bad {
  const char* name;
  const char* command;
  Words words;
  std::string message;
};
class VmUsageErrorTest : public testing::TestWithParam<Bad> {};

TEST_P(VmUsageErrorTest, OneLineSaysWhatIsWrong) {
  const auto request = parse_vm_command(GetParam().command, GetParam().words);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().message(), GetParam().message);
}

constexpr const char* kNameRule =
    " is not 1 to 64 letters, digits, '.', '-' and '_', of which the first is a letter or digit";

INSTANTIATE_TEST_SUITE_P(
    Words, VmUsageErrorTest,
    testing::Values(
        Bad{"NoName", "status", {}, "the name of a VM is needed (see tandem list)"},
        Bad{"APath", "status", {"../vm"}, std::string("'../vm'") + kNameRule},
        Bad{"AnotherWord", "pause", {"v", "now"}, "The following argument was not expected: now"},
        Bad{"ListWithAName", "list", {"v"}, "The following argument was not expected: v"},
        Bad{"ForceOfAnother", "pause", {"v", "--force"}, "The following argument was not expected: --force"},
        Bad{"JsonOfConsole", "console", {"v", "--json"}, "The following argument was not expected: --json"},
        Bad{"TimeOut", "stop", {"v", "--timeout", "-1"}, "--timeout: '-1' is no number of seconds from 0 to 1000000"},
        Bad{"NoReceiver", "migrate", {"v"}, "the address of a receiver is needed: unix:PATH, tcp:HOST:PORT or fd:N"},
        Bad{"BadReceiver", "migrate", {"v", "x"}, "'x' is no address: unix:PATH, tcp:HOST:PORT or fd:N is due"},
        Bad{"Downtime",
            "migrate",
            {"v", "fd:3", "--downtime", "0"},
            "--downtime: '0' is no number of milliseconds from 1 to 1000000"},
        Bad{"Compression", "migrate", {"v", "fd:3", "--compress", "xz"}, "--compress: 'xz' is not zstd"},
        Bad{"StatusOfAnother", "migrate", {"v", "fd:3", "--status"}, "--status and --cancel take nothing but the VM"},
        Bad{"Size", "balloon", {"v", "many"}, "'many' is not a size: digits, then K, M, G or nothing"}),
    [](const auto& bad) { return std::string(bad.param.name); });

}  // namespace
}  // namespace tandem::cli
