// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/program_session.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/unit/guest-agent/agent_rig.hpp"

namespace tandem::agent {
namespace {

/// All that a program brought forth.
struct Outcome {
  std::string output{};
  std::string errors{};
  uint64_t credit = 0;
  ExecEnded ended{};
};

class ProgramSessionTest : public AgentTest {
 protected:
  uint32_t start(const ExecRequest& request) { return ask_for<ExecStarted>(request).pid; }

  /// Takes frames until one is there that ends the program's run.
  Outcome finish() {
    Outcome outcome;
    while (true) {
      const Frame frame = channel_->receive().value();
      const std::string text(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
      if (frame.kind == FrameKind::kOutput) {
        outcome.output += text;
      } else if (frame.kind == FrameKind::kErrorOutput) {
        outcome.errors += text;
      } else if (frame.kind == FrameKind::kCredit) {
        outcome.credit += credit_of(frame).value();
      } else {
        outcome.ended = message_in(frame).value().as<ExecEnded>().value();
        return outcome;
      }
    }
  }

  Outcome run(const ExecRequest& request) {
    start(request);
    send_input("");
    return finish();
  }
  static ExecRequest shell(std::string script) { return {.arguments = {"sh", "-c", std::move(script)}}; }
};

TEST_F(ProgramSessionTest, StreamsAndStatusComeBack) {
  const Outcome outcome = run(shell("echo out; echo err >&2; exit 42"));
  EXPECT_EQ(outcome.output, "out\n");
  EXPECT_EQ(outcome.errors, "err\n");
  EXPECT_EQ(outcome.ended.status, 42U);
  EXPECT_EQ(outcome.ended.signal, std::nullopt);
  EXPECT_FALSE(outcome.ended.timed_out);
}

TEST_F(ProgramSessionTest, InputAndItsEndReachTheProgram) {
  start({.arguments = {"cat"}});
  send_input("first ");
  send_input(std::string_view("sec\0ond", 7));
  send_input("");
  const Outcome outcome = finish();
  EXPECT_EQ(outcome.output, std::string("first sec\0ond", 13));
  EXPECT_EQ(outcome.ended.status, 0U);
}

TEST_F(ProgramSessionTest, MoreThanTheWindowGoesThroughWithCredit) {
  constexpr size_t kPieces = 64;
  const std::string piece(kMaxStreamBytes, 'x');
  start({.arguments = {"cat"}});
  uint64_t credit = kInputWindowBytes;
  size_t received = 0;
  for (size_t sent = 0; sent < kPieces || received < kPieces * piece.size();) {
    if (sent < kPieces && credit >= piece.size()) {
      send_input(piece);
      credit -= piece.size();
      ++sent;
      continue;
    }
    const Frame frame = channel_->receive().value();
    if (frame.kind == FrameKind::kCredit) {
      credit += credit_of(frame).value();
    } else {
      ASSERT_EQ(frame.kind, FrameKind::kOutput);
      received += frame.payload.size();
    }
  }
  send_input("");
  EXPECT_EQ(finish().ended.status, 0U);
}

TEST_F(ProgramSessionTest, MoreInputThanThereIsCreditForEndsTheProgram) {
  const uint32_t pid = start({.arguments = {"sleep", "1000"}});
  const std::string piece(kMaxStreamBytes, 'x');
  // One window lies in the pipe and with the agent; a pipe holds less than that.
  for (size_t sent = 0; sent <= 2 * kInputWindowBytes; sent += piece.size()) {
    send_input(piece);
  }
  EXPECT_EQ(next_message().as<ErrorReply>().value().code, "bad-request");
  EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0);
  ask_for<PingReply>(PingRequest{});
}

TEST_F(ProgramSessionTest, ASignalReachesAProgramThatDoesNotReadItsInput) {
  start({.arguments = {"sleep", "1000"}});
  const std::string piece(kMaxStreamBytes, 'x');
  for (size_t sent = 0; sent < kInputWindowBytes; sent += piece.size()) {
    send_input(piece);
  }
  ASSERT_TRUE(channel_->send(ExecSignal{.signal = SIGTERM}));
  EXPECT_EQ(finish().ended.signal, static_cast<uint32_t>(SIGTERM));
}

TEST_F(ProgramSessionTest, ASignalThatDoesNotExistIsRefused) {
  start({.arguments = {"sleep", "1000"}});
  EXPECT_EQ(error_of(ExecSignal{.signal = 1000}), "bad-request");
}

TEST_F(ProgramSessionTest, ATimeOutKillsTheProgramAndWhatItStarted) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ExecRequest request = shell("exec 3<> " + pipe + "; sleep 1000 & wait");
  request.timeout_ns = 200'000'000;
  start(request);
  const Outcome outcome = finish();
  EXPECT_TRUE(outcome.ended.timed_out);
  EXPECT_EQ(outcome.ended.signal, static_cast<uint32_t>(SIGKILL));
  // No one holds the pipe once both are gone: the open for writing says so.
  int writer = -1;
  do {
    writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  } while (writer >= 0 && ::close(writer) == 0);
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(ProgramSessionTest, ALostConnectionKillsTheProgram) {
  const uint32_t pid = start({.arguments = {"sleep", "1000"}});
  disconnect();
  EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0);
}

TEST_F(ProgramSessionTest, AClientThatDoesNotReadIsAsGoodAsNone) {
  const uint32_t pid = start({.arguments = {"yes"}});
  disconnect();
  EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0);
}

TEST_F(ProgramSessionTest, WhatAProgramLeavesBehindKeepsNobodyWaiting) {
  const Outcome outcome = run(shell("sleep 1000 & echo $!"));
  EXPECT_EQ(outcome.ended.status, 0U);
  const auto pid = static_cast<pid_t>(std::stol(outcome.output));
  EXPECT_EQ(::kill(pid, SIGKILL), 0) << "it lives on";
}

TEST_F(ProgramSessionTest, AllThatWasWrittenBeforeTheEndArrives) {
  const Outcome outcome = run(shell("head -c 60000 /dev/zero; head -c 50000 /dev/zero >&2"));
  EXPECT_EQ(outcome.output.size(), 60000U);
  EXPECT_EQ(outcome.errors.size(), 50000U);
}

TEST_F(ProgramSessionTest, AProgramThatClosesItsInputStillEndsWell) {
  start(shell("exec 0<&-; read -r line < /dev/null; echo done"));
  send_input(std::string(kMaxStreamBytes, 'x'));
  EXPECT_EQ(finish().output, "done\n");
}

TEST_F(ProgramSessionTest, VariablesAndFolderAreThoseOfTheRequest) {
  const Outcome outcome =
      run({.arguments = {"sh", "-c", "echo $COLOUR $PWD"}, .environment = {"COLOUR=blue"}, .directory = "/usr"});
  EXPECT_EQ(outcome.output, "blue /usr\n");
}

TEST_F(ProgramSessionTest, SeveralProgramsRunOneAfterTheOther) {
  EXPECT_EQ(run(shell("echo 1")).output, "1\n");
  EXPECT_EQ(run(shell("echo 2")).output, "2\n");
}

TEST_F(ProgramSessionTest, WhatCannotBeStartedIsAnError) {
  EXPECT_EQ(error_of(ExecRequest{.arguments = {"no-such-program-anywhere"}}), "not-found");
  EXPECT_EQ(error_of(ExecRequest{.arguments = {"/"}}), "permission");
  EXPECT_EQ(error_of(ExecRequest{.arguments = {"true"}, .directory = "/no/such/folder"}), "not-found");
  EXPECT_EQ(error_of(ExecRequest{}), "bad-request");
  EXPECT_EQ(error_of(ExecRequest{.arguments = {std::string("a\0b", 3)}}), "bad-request");
  EXPECT_EQ(error_of(ExecRequest{.arguments = {"true"}, .environment = {"NOVALUE"}}), "bad-request");
}

}  // namespace
}  // namespace tandem::agent
