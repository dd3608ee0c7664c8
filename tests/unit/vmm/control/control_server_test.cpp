// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/control_server.hpp"

#include <latch>
#include <random>

#include "tests/unit/vmm/control/control_test.hpp"

namespace tandem::control {
namespace {

constexpr std::string_view kStatus = R"({"version":1,"id":1,"command":"status"})";

/// A job that lasts until the test, or a cancel, ends it.
class HeldJob {
 public:
  ControlCommand command(Job::WhenAlone when_alone = Job::WhenAlone::kIsCancelled) {
    return {.name = "save", .start = [this, when_alone](const Json&) -> Result<CommandOutcome> {
              return Job{.command = "save",
                         .work = [this](JobContext& context) { return work(context); },
                         .when_alone = when_alone};
            }};
  }
  void release() { signal_eventfd(released_.get()); }
  bool was_cancelled = false;

 private:
  Result<Json> work(JobContext& context) {
    context.report({.phase = "memory", .done = 1, .total = 4});
    std::array<pollfd, 2> entries{{{context.cancel_fd(), POLLIN, 0}, {released_.get(), POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), -1);
    was_cancelled = context.is_cancelled();
    return was_cancelled ? Result<Json>(fail(Errc::kIo, "cancelled")) : Result<Json>(Json{{"bytes", 4}});
  }
  UniqueFd released_ = create_eventfd().value();
};

TEST_F(ControlServerTest, StatusTellsWhatTheMachineIs) {
  start();
  const Json reply = ask(connect(), kStatus);
  EXPECT_EQ(reply["id"], 1);
  const Json& status = reply["result"];
  EXPECT_EQ(status["name"], "vm1");
  EXPECT_EQ(status["pid"], 4242);
  EXPECT_EQ(status["state"], "running");
  EXPECT_EQ(status["vcpus"], Json::parse(R"([{"index":0,"thread":4243},{"index":1,"thread":4244}])"));
  EXPECT_EQ(status["back_ends"][0]["id"], "disk0");
  EXPECT_EQ(status["back_ends"][0]["path"], "/a\xEF\xBF\xBD") << "bytes that are no UTF-8 are replaced";
  EXPECT_EQ(status["pv_vcpu_state"]["back_end"], "bpf");
  EXPECT_EQ(status["job"], nullptr);
}

TEST_F(ControlServerTest, CommandsReachTheMachineInTheirOrder) {
  start();
  const UniqueFd client = connect();
  send_text(client, R"({"version":1,"id":7,"command":"pause"}
{"version":1,"id":8,"command":"resume","arguments":{}}
{"version":1,"command":"reset"}
)");
  EXPECT_EQ(read_line(client), R"({"id":7,"result":{}})");
  EXPECT_EQ(read_line(client), R"({"id":8,"result":{}})");
  EXPECT_EQ(read_line(client), R"({"id":null,"result":{}})");
  EXPECT_EQ(machine_.calls, (std::vector<std::string>{"pause", "resume", "reset"}));
}

TEST_F(ControlServerTest, AnErrorOfTheMachineComesBackWithItsKind) {
  start();
  machine_.failure = Error(Errc::kBusy, "disk0: not now");
  EXPECT_EQ(ask(connect(), R"({"version":1,"id":3,"command":"pause"})"),
            Json::parse(R"({"id":3,"error":{"kind":"busy","message":"disk0: not now"}})"));
}

TEST_F(ControlServerTest, StopPressesThePowerKeyAndForceEnds) {
  start();
  const UniqueFd client = connect();
  EXPECT_TRUE(ask(client, R"({"version":1,"id":1,"command":"stop"})").contains("result"));
  EXPECT_TRUE(ask(client, R"({"version":1,"id":2,"command":"stop","arguments":{"force":true}})").contains("result"));
  EXPECT_EQ(machine_.calls, (std::vector<std::string>{"power key", "end: stopped by force"}));
}

TEST_F(ControlServerTest, APausedGuestIsNotAskedToStop) {
  start();
  machine_.now.state = "paused";
  EXPECT_EQ(ask(connect(), R"({"version":1,"id":1,"command":"stop"})")["error"]["kind"], "busy");
  EXPECT_TRUE(machine_.calls.empty());
}

TEST_F(ControlServerTest, TheBalloonIsShownAndSet) {
  start();
  const UniqueFd client = connect();
  const Json set = ask(client, R"({"version":1,"id":1,"command":"balloon","arguments":{"target_bytes":4096}})");
  EXPECT_EQ(set["result"], Json::parse(R"({"target_bytes":4096,"actual_bytes":0})"));
  machine_.now.balloon.reset();
  EXPECT_EQ(ask(client, R"({"version":1,"id":1,"command":"balloon"})")["error"]["kind"], "unsupported");
}

TEST_F(ControlServerTest, AConsoleTakesTheConnectionOver) {
  start();
  const UniqueFd client = connect();
  EXPECT_EQ(ask(client, R"({"version":1,"id":1,"command":"console"})")["result"], Json::object());
  run_until([&] { return machine_.console.has_value(); });
  EXPECT_EQ(server_->client_count(), 0U);
  send_text(client, "not a request\n");
  std::array<char, 32> got{};
  EXPECT_EQ(::recv(machine_.console->get(), got.data(), got.size(), 0), 14);
  EXPECT_EQ(ask(connect(), R"({"version":1,"id":2,"command":"console"})")["error"]["kind"], "busy");
  EXPECT_EQ(
      ask(connect(), R"({"version":1,"id":2,"command":"console","arguments":{"device":"hvc0"}})")["error"]["kind"],
      "not-found");
}

/// A line, and the reply's error.
struct BadLine {
  const char* name;
  std::string line;
  const char* kind;
};
class BadLineTest : public ControlServerTest, public testing::WithParamInterface<BadLine> {};

TEST_P(BadLineTest, IsAnsweredAndTheNextIsServed) {
  start();
  const UniqueFd client = connect();
  const Json reply = ask(client, GetParam().line);
  EXPECT_EQ(reply["error"]["kind"], GetParam().kind) << reply.dump();
  EXPECT_TRUE(ask(client, kStatus).contains("result"));
  EXPECT_TRUE(machine_.calls.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Lines, BadLineTest,
    testing::Values(BadLine{"Empty", "", "bad-request"}, BadLine{"Garbage", "\x01\xff\xfe garbage", "bad-request"},
                    BadLine{"NoObject", "[1]", "bad-request"}, BadLine{"Number", "1", "bad-request"},
                    BadLine{"NoVersion", R"({"command":"pause"})", "bad-request"},
                    BadLine{"OtherVersion", R"({"version":2,"command":"pause"})", "unsupported"},
                    BadLine{"VersionAsText", R"({"version":"1","command":"pause"})", "bad-request"},
                    BadLine{"NegativeVersion", R"({"version":-1,"command":"pause"})", "bad-request"},
                    BadLine{"NoCommand", R"({"version":1,"id":1})", "bad-request"},
                    BadLine{"CommandAsNumber", R"({"version":1,"command":5})", "bad-request"},
                    BadLine{"UnknownCommand", R"({"version":1,"command":"fly"})", "unsupported"},
                    BadLine{"IdAsText", R"({"version":1,"id":"a","command":"pause"})", "bad-request"},
                    BadLine{"UnknownField", R"({"version":1,"command":"pause","urgent":true})", "bad-request"},
                    BadLine{"ArgumentsAsList", R"({"version":1,"command":"pause","arguments":[]})", "bad-request"},
                    BadLine{"UnknownArgument", R"({"version":1,"command":"pause","arguments":{"a":1}})", "bad-request"},
                    BadLine{"ArgumentOfAnotherType", R"({"version":1,"command":"stop","arguments":{"force":"yes"}})",
                            "bad-request"},
                    BadLine{"NegativeSize", R"({"version":1,"command":"balloon","arguments":{"target_bytes":-1}})",
                            "bad-request"},
                    BadLine{"Deep", std::string(60000, '['), "bad-request"},
                    BadLine{"DeepArguments",
                            R"({"version":1,"command":"status","arguments":{"a":)" + std::string(32000, '[') +
                                std::string(32000, ']') + "}}",
                            "bad-request"},
                    BadLine{"Nul", std::string("{\"version\":1\0}", 14), "bad-request"}),
    [](const auto& bad) { return std::string(bad.param.name); });

TEST_F(ControlServerTest, ALineThatIsTooLongEndsTheConnection) {
  start();
  const UniqueFd client = connect();
  std::string text;
  bool ended = false;
  const std::string piece(32768, 'x');
  run_until([&] {
    [[maybe_unused]] const ssize_t sent = ::send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    text += read_ready(client, &ended);
    return ended;
  });
  EXPECT_TRUE(ask(connect(), kStatus).contains("result"));
}

TEST_F(ControlServerTest, TheLongestLineIsTaken) {
  start();
  std::string line = R"({"version":1,"id":9,"command":")";
  line += std::string(kMaxRequestBytes - line.size() - 2, 'c') + "\"}";
  const UniqueFd client = connect();
  std::string rest = line + '\n';
  run_until([&] {
    const ssize_t sent = ::send(client.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    rest.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    return rest.empty();
  });
  EXPECT_EQ(Json::parse(read_line(client))["error"]["kind"], "unsupported");
}

TEST_F(ControlServerTest, HalfALineHoldsUpNobody) {
  start();
  const UniqueFd half = connect();
  send_text(half, kStatus.substr(0, 20));
  EXPECT_TRUE(ask(connect(), kStatus).contains("result"));
  send_text(half, std::string(kStatus.substr(20)) + '\n');
  EXPECT_TRUE(Json::parse(read_line(half)).contains("result"));
}

TEST_F(ControlServerTest, AClientThatEndsItsInputGetsItsReplies) {
  start();
  const UniqueFd client = connect();
  send_text(client, std::string(kStatus) + '\n');
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  EXPECT_TRUE(Json::parse(read_to_end(client)).contains("result"));
  run_until([&] { return server_->client_count() == 0; });
}

TEST_F(ControlServerTest, AClientThatDoesNotReadHoldsUpNobodyAndLosesNothing) {
  constexpr size_t kRequests = 10000;
  start();
  const UniqueFd slow = connect();
  std::string rest;
  for (size_t count = 0; count < kRequests; ++count) {
    rest += std::string(kStatus) + '\n';
  }
  // Until the server takes no more: its replies are not read.
  const auto push = [&] {
    const ssize_t sent = ::send(slow.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    rest.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    return sent > 0;
  };
  size_t idle = 0;
  run_until([&] {
    idle = push() ? 0 : idle + 1;
    return idle == 1000;
  });
  ASSERT_FALSE(rest.empty());
  const UniqueFd other = connect();
  for (unsigned count = 0; count < 100; ++count) {
    EXPECT_TRUE(ask(other, kStatus).contains("result"));
  }
  size_t replies = 0;
  run_until([&] {
    push();
    const std::string text = read_ready(slow);
    replies += static_cast<size_t>(std::ranges::count(text, '\n'));
    return replies == kRequests;
  });
}

TEST_F(ControlServerTest, AThousandClientsLeaveRoomForTheNext) {
  start();
  std::vector<UniqueFd> idle;
  for (unsigned count = 0; count < 1000; ++count) {
    idle.push_back(connect());
    run_until([&] { return loop_->run_ready() == 0; });
  }
  EXPECT_EQ(server_->client_count(), ControlServer::kMaxClients);
  EXPECT_EQ(Json::parse(read_to_end(idle.front()))["error"]["kind"], "busy");
  EXPECT_TRUE(ask(connect(), kStatus).contains("result"));
}

TEST_F(ControlServerTest, RandomBytesDoNoHarm) {
  start();
  std::mt19937 random(42);
  for (unsigned round = 0; round < 200; ++round) {
    const UniqueFd client = connect();
    std::string bytes(random() % 3000, '\0');
    std::ranges::generate(bytes, [&] { return static_cast<char>(random() % 7 == 0 ? '\n' : random()); });
    send_text(client, bytes);
    loop_->run_ready();
  }
  EXPECT_TRUE(ask(connect(), kStatus).contains("result"));
  EXPECT_TRUE(machine_.calls.empty());
}

TEST_F(ControlServerTest, AJobTellsItsProgressAndItsResult) {
  HeldJob job;
  start({job.command()});
  const UniqueFd client = connect();
  EXPECT_EQ(ask(client, R"({"version":1,"id":5,"command":"save"})"),
            Json::parse(R"({"id":5,"progress":{"phase":"memory","done":1,"total":4}})"));
  job.release();
  EXPECT_EQ(read_line(client), R"({"id":5,"result":{"bytes":4}})");
}

TEST_F(ControlServerTest, TheVmAnswersWhileAJobRunsAndRefusesAnother) {
  HeldJob job;
  start({job.command()});
  const UniqueFd client = connect();
  ask(client, R"({"version":1,"id":5,"command":"save"})");
  const UniqueFd other = connect();
  EXPECT_EQ(ask(other, kStatus)["result"]["job"]["command"], "save");
  EXPECT_EQ(ask(other, R"({"version":1,"id":1,"command":"save"})")["error"],
            Json::parse(R"({"kind":"busy","message":"save in progress"})"));
  EXPECT_TRUE(ask(client, kStatus).contains("result")) << "also the client that waits for it";
  job.release();
  EXPECT_EQ(read_line(client), R"({"id":5,"result":{"bytes":4}})");
}

TEST_F(ControlServerTest, AJobIsCancelledByAnotherClient) {
  HeldJob job;
  start({job.command()});
  const UniqueFd client = connect();
  ask(client, R"({"version":1,"id":5,"command":"save"})");
  const UniqueFd other = connect();
  EXPECT_EQ(ask(other, R"({"version":1,"id":1,"command":"cancel","arguments":{"command":"migrate"}})")["error"]["kind"],
            "not-found");
  EXPECT_TRUE(
      ask(other, R"({"version":1,"id":1,"command":"cancel","arguments":{"command":"save"}})").contains("result"));
  EXPECT_EQ(Json::parse(read_line(client))["error"]["message"], "cancelled");
}

TEST_F(ControlServerTest, AJobWhoseClientLeavesIsCancelled) {
  HeldJob job;
  start({job.command()});
  UniqueFd client = connect();
  ask(client, R"({"version":1,"id":5,"command":"save"})");
  client.reset();
  run_until([&] { return jobs_->running().empty(); });
  EXPECT_TRUE(job.was_cancelled);
}

TEST_F(ControlServerTest, AJobThatGoesOnAloneOutlastsItsClient) {
  HeldJob job;
  start({job.command(Job::WhenAlone::kGoesOn)});
  UniqueFd client = connect();
  ask(client, R"({"version":1,"id":5,"command":"save"})");
  client.reset();
  run_until([&] { return server_->client_count() == 0; });
  EXPECT_EQ(jobs_->running(), "save");
  job.release();
  run_until([&] { return jobs_->running().empty(); });
  EXPECT_FALSE(job.was_cancelled);
}

TEST_F(ControlServerTest, TheClientOfAJobIsNotTheOneThatMakesRoom) {
  HeldJob job;
  start({job.command()});
  const UniqueFd client = connect();
  ask(client, R"({"version":1,"id":5,"command":"save"})");
  std::vector<UniqueFd> others;
  for (size_t count = 0; count < 2 * ControlServer::kMaxClients; ++count) {
    others.push_back(connect());
    run_until([&] { return loop_->run_ready() == 0; });
  }
  job.release();
  EXPECT_EQ(read_line(client), R"({"id":5,"result":{"bytes":4}})");
}

TEST_F(ControlServerTest, TheLastRepliesAreSentAtTheEnd) {
  HeldJob job;
  start({job.command()});
  const UniqueFd client = connect();
  ask(client, R"({"version":1,"id":5,"command":"save"})");
  server_->finish();
  bool ended = false;
  const std::string text = read_ready(client, &ended);
  EXPECT_EQ(Json::parse(text)["error"]["message"], "cancelled");
  EXPECT_TRUE(ended);
  EXPECT_TRUE(job.was_cancelled);
}

TEST_F(ControlServerTest, TheSocketGoesWithTheServer) {
  start();
  const std::string path = control_socket_path(directory_, "vm1");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tandem::control
