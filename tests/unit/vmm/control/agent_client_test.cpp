// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/agent_client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/unit/vmm/control/vsock_rig.hpp"
#include "vmm/control/agent_files.hpp"
#include "vmm/control/agent_program.hpp"
#include "vmm/control/vsock_dialer.hpp"

namespace tandem::control {
namespace {

using agent::Deadline;

TEST_F(VsockTest, TheAgentAnswersBehindTheSocket) {
  serve_one();
  auto client = AgentClient::connect(path_, std::chrono::seconds(0)).value();
  EXPECT_EQ(client.hello().version, TANDEM_VERSION);
  EXPECT_GT(client.ask<agent::PingReply>(agent::PingRequest{}).value().uptime_ns, 0U);
}

TEST_F(VsockTest, AConnectionThatEndsInPlaceOfTheAnswerMeansThatNobodyListens) {
  answer_one("", [](const UniqueFd&) {});
  EXPECT_EQ(failure(), path_ + ": nothing in the guest listens");
}

TEST_F(VsockTest, ASocketThatIsNoVsockDevicesIsFoundOut) {
  answer_one("220 smtp.example ESMTP\r\n", [](const UniqueFd&) {});
  EXPECT_EQ(failure(), path_ + ": not the socket of a vsock device");
}

TEST_F(VsockTest, ALineWithoutAnEndIsFoundOut) {
  answer_one(std::string(1000, 'O'), [](const UniqueFd&) {});
  EXPECT_EQ(failure(), path_ + ": not the socket of a vsock device");
}

TEST_F(VsockTest, WithoutASocketThereIsNoVm) {
  EXPECT_EQ(dial_vsock(folder_ + "/none", 1, Deadline()).error().code(), Errc::kNotFound);
  EXPECT_EQ(dial_vsock(std::string(kMaxSocketPathBytes + 1, 'p'), 1, Deadline()).error().code(),
            Errc::kInvalidArgument);
}

TEST_F(VsockTest, ADeviceThatAcceptsNobodyIsNotWaitedForForever) {
  ASSERT_EQ(::listen(listener_.get(), 0), 0);
  std::vector<UniqueFd> waiting;
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0);
  EXPECT_EQ(dial_vsock(path_, 1, Deadline(std::chrono::milliseconds(1))).error().message(),
            path_ + ": no answer in time");
}

TEST_F(VsockTest, TextsOfAnAgentAreCutShort) {
  pretend(hello_frame({.oldest_protocol = 9, .newest_protocol = 9, .version = std::string(100'000, 'v')}));
  EXPECT_LT(failure().size(), 2 * agent::kMaxErrorBytes);
  EXPECT_LE(
      AgentClient::reply_in<agent::Done>(
          agent::Message::decode(agent::encode_message(agent::ErrorReply{"busy", std::string(100'000, 't')})).value())
          .error()
          .message()
          .size(),
      agent::kMaxErrorBytes);
}

TEST_F(VsockTest, AnAgentOfAnOlderProtocolIsNamed) {
  pretend(hello_frame({.oldest_protocol = 0, .newest_protocol = 0, .version = "0.0.1"}));
  EXPECT_EQ(failure(), path_ + ": the guest's agent (0.0.1) speaks protocols 0 to 0, this program 1 to 1");
}

TEST_F(VsockTest, AnAgentOfANewerProtocolThatKnowsOursIsSpokenTo) {
  pretend(hello_frame({.oldest_protocol = 1, .newest_protocol = 9, .version = "9", .capabilities = {"ping"}}));
  EXPECT_EQ(failure(), "");
}

TEST_F(VsockTest, GarbageInPlaceOfAnAgentIsFoundOut) {
  pretend(std::vector<std::byte>(1000, std::byte{0xa5}));
  EXPECT_EQ(failure(), path_ + ": the guest's agent: not a frame of the agent's protocol");
}

TEST_F(VsockTest, WhatTheAgentDoesNotKnowIsNotAsked) {
  pretend(hello_frame({.version = "0.9", .capabilities = {"ping"}}));
  auto client = AgentClient::connect(path_, std::chrono::seconds(0)).value();
  EXPECT_EQ(client.ask<agent::Done>(agent::PowerRequest{}).error().message(),
            "the guest's agent (0.9) does not know 'power'");
}

/// A client of an agent over a pair of sockets, and files for its streams.
class AgentClientTest : public agent::AgentTest {
 protected:
  AgentClient& client() { return *client_; }

  /// A descriptor from which `contents` can be read.
  UniqueFd readable(const std::string& contents) {
    std::ofstream(folder_ + "/in", std::ios::binary) << contents;
    return UniqueFd(::open((folder_ + "/in").c_str(), O_RDONLY | O_CLOEXEC));
  }
  UniqueFd writable(const std::string& name) {
    return UniqueFd(::open((folder_ + "/" + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  [[nodiscard]] std::string contents_of(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Result<agent::ExecEnded> run(const std::string& script, const std::string& input = "") {
    const UniqueFd in = readable(input);
    const UniqueFd out = writable("out");
    const UniqueFd err = writable("err");
    return AgentProgram(client(), {.input = in.get(), .output = out.get(), .errors = err.get()})
        .run({.arguments = {"sh", "-c", script}});
  }

  std::optional<AgentClient> client_{AgentClient::greet(new_session(), Deadline(std::chrono::seconds(10))).value()};
  void TearDown() override { client_.reset(); }
};

TEST_F(AgentClientTest, AProgramsStreamsAndStatusAreItsOwn) {
  const auto ended = run("cat; echo oops >&2; exit 3", std::string("some\0input", 10)).value();
  EXPECT_EQ(ended.status, 3U);
  EXPECT_EQ(contents_of("out"), std::string("some\0input", 10));
  EXPECT_EQ(contents_of("err"), "oops\n");
}

TEST_F(AgentClientTest, MegabytesGoThereAndComeBackTheSame) {
  std::string input(8U << 20, '\0');
  uint32_t number = 1;
  for (char& byte : input) {
    number = number * 1664525 + 1013904223;
    byte = static_cast<char>(number >> 24);
  }
  EXPECT_EQ(run("cat", input).value().status, 0U);
  EXPECT_EQ(contents_of("out"), input);
}

TEST_F(AgentClientTest, AProgramThatReadsNothingEndsAllTheSame) {
  EXPECT_EQ(run("exit 5", std::string(1U << 20, 'x')).value().status, 5U);
}

TEST_F(AgentClientTest, AReaderThatWentAwayEndsTheProgram) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd write_end(pipe[1]);
  ::close(pipe[0]);
  const auto ended = AgentProgram(client(), {.output = write_end.get()}).run({.arguments = {"yes"}});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message(), "standard output: Broken pipe");
}

TEST_F(AgentClientTest, AClosedInputIsAnEmptyOne) {
  const UniqueFd out = writable("out");
  EXPECT_EQ(AgentProgram(client(), {.output = out.get()}).run({.arguments = {"cat"}}).value().status, 0U);
}

TEST_F(AgentClientTest, WhatCannotBeStartedSaysWhy) {
  const auto ended = AgentProgram(client(), {}).run({.arguments = {"no-such-program-anywhere"}});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Errc::kNotFound);
  EXPECT_EQ(ended.error().message(), "no-such-program-anywhere: No such file or directory");
}

TEST_F(AgentClientTest, ARequestThatIsTooLongIsAnError) {
  const auto ended = AgentProgram(client(), {}).run({.arguments = {"true", std::string(agent::kMaxMessageBytes, 'x')}});
  ASSERT_FALSE(ended);
  EXPECT_TRUE(ended.error().message().ends_with("bytes; at most 131072 are allowed")) << ended.error().message();
  EXPECT_TRUE(client().ask<agent::PingReply>(agent::PingRequest{}));
}

TEST_F(AgentClientTest, FilesGoThereAndBack) {
  const std::string contents(3 * agent::kInputWindowBytes + 1, 'f');
  const UniqueFd in = readable(contents);
  const auto put = put_file(client(), {.path = folder_ + "/there", .mode = 0640}, {.file = in.get()}).value();
  EXPECT_EQ(put.size_bytes, contents.size());
  EXPECT_EQ(contents_of("there"), contents);
  const UniqueFd out = writable("back");
  const auto got = get_file(client(), {.path = folder_ + "/there"}, {.file = out.get()}).value();
  EXPECT_EQ(got.mode, 0640U);
  EXPECT_EQ(contents_of("back"), contents);
}

TEST_F(AgentClientTest, AFileThatCannotBeMadeSaysWhy) {
  const UniqueFd in = readable("x");
  const auto put = put_file(client(), {.path = folder_ + "/no/folder"}, {.file = in.get()});
  EXPECT_EQ(put.error().code(), Errc::kNotFound);
  const auto got = get_file(client(), {.path = folder_ + "/none"}, {.file = in.get()});
  EXPECT_EQ(got.error().code(), Errc::kNotFound);
}

TEST_F(AgentClientTest, AnInterruptEndsAFilesWay) {
  const UniqueFd interrupt = create_eventfd().value();
  signal_eventfd(interrupt.get());
  const UniqueFd in = readable("x");
  const auto put = put_file(client(), {.path = folder_ + "/there"}, {.file = in.get(), .interrupt = interrupt.get()});
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().message(), "interrupted");
}

}  // namespace
}  // namespace tandem::control
