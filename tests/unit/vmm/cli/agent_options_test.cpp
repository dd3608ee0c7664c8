// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/agent_options.hpp"

#include <gtest/gtest.h>

#include "vmm/cli/agent_report.hpp"

namespace tandem::cli {
namespace {

using Words = std::vector<std::string>;

AgentRequest parsed(Words words) {
  auto request = parse_agent_command(std::move(words));
  EXPECT_TRUE(request) << request.error().message();
  return request ? std::get<AgentRequest>(*request) : AgentRequest{};
}
template <typename What>
What what_of(Words words) {
  return std::get<What>(parsed(std::move(words)).what);
}

TEST(AgentOptionsTest, OptionsStandBeforeAndBehindTheFunction) {
  const AgentRequest request = parsed({"--wait", "30", "./vm.vsock", "info", "--json"});
  EXPECT_EQ(request.vsock_path, "./vm.vsock");
  EXPECT_EQ(request.function, "info");
  EXPECT_TRUE(request.json);
  EXPECT_EQ(request.patience, std::chrono::seconds(30));
  EXPECT_TRUE(std::holds_alternative<agent::InfoRequest>(request.what));
}

TEST(AgentOptionsTest, AVmWithoutASlashIsOneOfThatName) {
  const AgentRequest request = parsed({"vm1", "ping"});
  EXPECT_EQ(request.vm_name, "vm1");
  EXPECT_EQ(request.vsock_path, "");
}

TEST(AgentOptionsTest, WhatFollowsExecIsTheProgramWithAllItsArguments) {
  const Words program{"ls", "-l", "--json", "", "--", "-x"};
  EXPECT_EQ(what_of<agent::ExecRequest>({"./v", "exec", "ls", "-l", "--json", "", "--", "-x"}).arguments, program);
  EXPECT_EQ(what_of<agent::ExecRequest>({"./v", "exec", "--", "ls", "-l", "--json", "", "--", "-x"}).arguments,
            program);
}

TEST(AgentOptionsTest, ExecHasVariablesAFolderAndATimeOut) {
  const auto exec = what_of<agent::ExecRequest>(
      {"./v", "exec", "--env", "A=1", "--env", "B=2", "--directory", "/srv", "--timeout", "1.5", "--", "env"});
  EXPECT_EQ(exec.environment, (Words{"A=1", "B=2"}));
  EXPECT_EQ(exec.directory, "/srv");
  EXPECT_EQ(exec.timeout_ns, 1'500'000'000U);
  EXPECT_EQ(exec.arguments, Words{"env"});
}

TEST(AgentOptionsTest, FilesGoBothWays) {
  const auto put = what_of<PutFile>({"./v", "put", "local", "/there", "--mode", "755"});
  EXPECT_EQ(put.local, "local");
  EXPECT_EQ(put.request.path, "/there");
  EXPECT_EQ(put.request.mode, 0755U);
  const auto get = what_of<GetFile>({"./v", "get", "/there"});
  EXPECT_EQ(get.request.path, "/there");
  EXPECT_EQ(get.local, "-");
}

TEST(AgentOptionsTest, TheOtherFunctionsHaveTheirRequests) {
  EXPECT_EQ(what_of<agent::FreezeRequest>({"./v", "freeze"}).timeout_ns, 10'000'000'000U);
  EXPECT_EQ(what_of<agent::FreezeRequest>({"./v", "freeze", "--timeout", "60"}).timeout_ns, 60'000'000'000U);
  EXPECT_TRUE(what_of<agent::PowerRequest>({"./v", "reboot"}).reboots);
  EXPECT_TRUE(what_of<agent::PowerRequest>({"./v", "shutdown", "--force"}).forced);
  EXPECT_EQ(what_of<SetClock>({"./v", "set-time"}).realtime_ns, std::nullopt);
  EXPECT_EQ(what_of<SetClock>({"./v", "set-time", "5"}).realtime_ns, 5'000'000'000U);
  what_of<agent::ThawRequest>({"./v", "thaw"});
  what_of<agent::PvStateRequest>({"./v", "pv-state"});
  what_of<agent::EventsRequest>({"./v", "events"});
  what_of<agent::AnnounceRequest>({"./v", "announce"});
  what_of<Reseed>({"./v", "reseed"});
}

TEST(AgentOptionsTest, HelpIsThereForAllAndForEach) {
  EXPECT_NE(std::get<std::string>(parse_agent_command({"--help"}).value()).find("Exit status"), std::string::npos);
  EXPECT_NE(std::get<std::string>(parse_agent_command({"./v", "exec", "--help"}).value()).find("--timeout"),
            std::string::npos);
}

struct Bad {
  const char* name;
  Words words;
  const char* message;
};

class BadAgentOptionsTest : public testing::TestWithParam<Bad> {};

TEST_P(BadAgentOptionsTest, IsRefusedWithOneLine) {
  const auto request = parse_agent_command(GetParam().words);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadAgentOptionsTest,
    testing::Values(
        Bad{"NoVm", {}, "a VM is needed (see tandem agent --help)"},
        Bad{"NoFunction", {"./v"}, "a function is needed (see tandem agent --help)"},
        Bad{"NoName",
            {".v", "ping"},
            "'.v' is not 1 to 64 letters, digits, '.', '-' and '_', of which the first is a letter or digit"},
        Bad{"LongPath", {"/" + std::string(107, 'p'), "ping"}, "the path of a socket has at most 107 bytes"},
        Bad{"NoProgram", {"./v", "exec"}, "exec: a program is needed"},
        Bad{"NoProgramBehindDashes", {"./v", "exec", "--"}, "exec: a program is needed"},
        Bad{"TimeOutOfWords",
            {"./v", "freeze", "--timeout", "soon"},
            "--timeout: 'soon' is no number of seconds from 0 to 1000000000"},
        Bad{"NegativeWait", {"./v", "ping", "--wait=-1"}, "--wait: '-1' is no number of seconds from 0 to 1000000000"},
        Bad{"BadMode", {"./v", "put", "a", "b", "--mode", "9"}, "--mode: '9' is no octal number from 0 to 7777"}),
    [](const auto& row) { return row.param.name; });

TEST(AgentReportTest, JsonHasAllThatIsThereInOrder) {
  const auto report = report_of(agent::PvStateReply{.vcpus = {{.vcpu = 0, .stolen_ns = 5}}, .no_preemption = "why"});
  EXPECT_EQ(as_json(report), R"({"vcpus":[{"vcpu":0,"stolen_ns":5}],"no_preemption":"why"})");
}

TEST(AgentReportTest, TextHasALineForEachFieldAndItem) {
  const auto report = report_of(agent::PvStateReply{.vcpus = {{.vcpu = 0, .stolen_ns = 5}}, .no_preemption = "why"});
  EXPECT_EQ(as_text(report), "vcpus:\n  vcpu=0  stolen_ns=5\nno_preemption: why\n");
}

TEST(AgentReportTest, WhatAGuestSaysDoesNotReachTheTerminalAsControl) {
  const auto report = report_of(agent::FreezeReply{.mount_points = {"/\x1b[2J\n/x"}});
  EXPECT_EQ(as_text(report), "mount_points:\n  /\\x1b[2J\\x0a/x\n");
}

TEST(AgentReportTest, BytesThatAreNoTextDoNotBreakTheJson) {
  EXPECT_EQ(as_json(report_of(agent::FreezeReply{.mount_points = {"\xff"}})), "{\"mount_points\":[\"\xef\xbf\xbd\"]}");
}

}  // namespace
}  // namespace tandem::cli
