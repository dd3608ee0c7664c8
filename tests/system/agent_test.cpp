// SPDX-License-Identifier: Apache-2.0
// The guest agent in a Linux guest, by `tandem agent`, in the testbed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "tests/system/equipped_guest.hpp"
#include "vmm/control/agent_client.hpp"
#include "vmm/control/agent_files.hpp"
#include "vmm/control/agent_program.hpp"
#include "vmm/control/vsock_dialer.hpp"

namespace tandem::tests {
namespace {

using control::AgentClient;

class GuestAgentTest : public EquippedGuestTest {
 protected:
  static AgentClient connect() { return AgentClient::connect(guest().vsock(), kHangLimit).value(); }
  /// Mounts a file system on one of the guest's disks.
  static void mount_disk() {
    const CommandResult mounted =
        guest().run("grep -q ' /mnt ' /proc/mounts || { mke2fs /dev/vdc && mount -t ext4 /dev/vdc /mnt; }");
    ASSERT_EQ(mounted.status, 0) << mounted.output << mounted.errors;
  }
  static void expect_alive() { EXPECT_EQ(guest().agent({"--wait", "300", "ping"}).status, 0); }
};

/// Bytes without a pattern, the same each time.
class ByteSource {
 public:
  std::vector<uint64_t> next(size_t words) {
    std::vector<uint64_t> piece(words);
    for (uint64_t& word : piece) {
      state_ ^= state_ << 13U;
      state_ ^= state_ >> 7U;
      state_ ^= state_ << 17U;
      word = state_;
    }
    return piece;
  }

 private:
  uint64_t state_ = 88172645463325252U;
};

constexpr size_t kPieceWords = 8192;

/// Writes `pieces` of a source to the pipe, and closes it.
void write_source(UniqueFd pipe, size_t pieces) {
  ByteSource source;
  for (size_t piece = 0; piece < pieces; ++piece) {
    const std::vector<uint64_t> words = source.next(kPieceWords);
    const auto bytes = std::as_bytes(std::span(words));
    if (!control::write_all({.file = pipe.get()}, bytes)) {
      return;
    }
  }
}

/// How many pieces of a source come out of the pipe before its end, or before something else does.
size_t read_source(UniqueFd pipe) {
  ByteSource source;
  std::vector<uint64_t> words(kPieceWords);
  for (size_t pieces = 0;; ++pieces) {
    const auto bytes = std::as_writable_bytes(std::span(words));
    for (size_t filled = 0; filled < bytes.size();) {
      const ssize_t count = ::read(pipe.get(), bytes.data() + filled, bytes.size() - filled);
      if (count <= 0) {
        return pieces;
      }
      filled += static_cast<size_t>(count);
    }
    if (words != source.next(kPieceWords)) {
      return pieces;
    }
  }
}

/// Sends bytes through `cat` in the guest, and holds what comes back against them.
void expect_echo(AgentClient client, size_t mebibytes) {
  ::signal(SIGPIPE, SIG_IGN);
  const size_t pieces = (mebibytes << 20U) / (kPieceWords * sizeof(uint64_t));
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  ASSERT_EQ(::pipe2(there.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(back.data(), O_CLOEXEC), 0);
  std::thread writer(write_source, UniqueFd(there[1]), pieces);
  size_t received = 0;
  std::thread reader([&received, pipe = UniqueFd(back[0])]() mutable { received = read_source(std::move(pipe)); });
  {
    const UniqueFd input(there[0]);
    const UniqueFd output(back[1]);
    const auto ended =
        control::AgentProgram(client, {.input = input.get(), .output = output.get()}).run({.arguments = {"cat"}});
    EXPECT_TRUE(ended && ended->status == 0) << (ended ? "" : ended.error().message());
  }
  writer.join();
  reader.join();
  EXPECT_EQ(received, pieces);
}

TEST_F(GuestAgentTest, AProgramsStreamsAndStatusAreItsOwn) {
  const CommandResult result = guest().run("cat; echo to stderr >&2; exit 42", std::string("in\0put", 6));
  EXPECT_EQ(result.output, std::string("in\0put", 6));
  EXPECT_EQ(result.errors, "to stderr\n");
  EXPECT_EQ(result.status, 42);
}

TEST_F(GuestAgentTest, ASignalATimeOutAndAMissingProgramHaveTheirStatus) {
  EXPECT_EQ(guest().run("kill -USR1 $$").status, 128 + 10);
  EXPECT_EQ(guest().agent({"exec", "--timeout", "0.5", "--", "sleep", "1000"}).status, 124);
  const CommandResult missing = guest().agent({"exec", "--", "no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.errors, "tandem: agent: exec: no-such-program: No such file or directory\n");
}

TEST_F(GuestAgentTest, ASignalToTheCommandReachesTheProgram) {
  ChildProcess command(guest().agent_command(
      {"exec", "--", "sh", "-c", "trap 'echo got it; exit 7' TERM; echo up; while :; do sleep 1; done"}));
  ASSERT_TRUE(command.wait_for("up\n", 0, kHangLimit)) << command.errors();
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait(kHangLimit), 7);
  EXPECT_EQ(command.output(), "up\ngot it\n");
}

TEST_F(GuestAgentTest, InfoIsThatOfTheGuest) {
  const CommandResult info = guest().agent({"info", "--json"});
  ASSERT_EQ(info.status, 0) << info.errors;
  const CommandResult inside = guest().run("printf '\"kernel\":\"%s\"' $(uname -r)");
  EXPECT_NE(info.output.find(inside.output), std::string::npos) << info.output;
  EXPECT_NE(info.output.find("\"hostname\":\"guest\""), std::string::npos) << info.output;
}

TEST_F(GuestAgentTest, FilesGoThereAndBack) {
  const std::string place = folder() + "/file";
  ASSERT_EQ(run_on_host({"sh", "-c", "head -c 3000000 /dev/urandom > " + place}).status, 0);
  EXPECT_EQ(guest().agent({"put", place, "/tmp/file", "--mode", "750"}).status, 0);
  EXPECT_EQ(guest().run("stat -c %a /tmp/file").output, "750\n");
  EXPECT_EQ(guest().agent({"get", "/tmp/file", place + ".back"}).status, 0);
  EXPECT_EQ(run_on_host({"cmp", place, place + ".back"}).status, 0);
}

TEST_F(GuestAgentTest, AFileThatIsFetchedHasTheModeThatTheUmaskLeaves) {
  const std::string place = folder() + "/fetched";
  ASSERT_EQ(guest().run("touch /tmp/open; chmod 777 /tmp/open").status, 0);
  const CommandResult mode = run_on_host(
      {"sh", "-c",
       "umask 027; tandem agent " + guest().vsock() + " get /tmp/open " + place + " && stat -c %a " + place});
  EXPECT_EQ(mode.output, "750\n") << mode.errors;
}

TEST_F(GuestAgentTest, EveryAddressIsAnnouncedAlsoOneWithALabel) {
  const CommandResult up = guest().run(
      "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6; ip addr add 192.0.2.8/24 dev eth0;"
      "ip addr add 192.0.2.9/24 dev eth0 label eth0:1; ip link set eth0 up");
  ASSERT_EQ(up.status, 0) << up.errors;
  const CommandResult announced = guest().agent({"announce", "--json"});
  EXPECT_EQ(announced.status, 0) << announced.errors;
  EXPECT_NE(announced.output.find("192.0.2.8"), std::string::npos) << announced.output;
  EXPECT_NE(announced.output.find("192.0.2.9"), std::string::npos) << announced.output;
  EXPECT_EQ(guest().run("ip addr flush dev eth0; echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6").status, 0);
}

TEST_F(GuestAgentTest, SixteenMebibytesGoThroughAndComeBackTheSame) { expect_echo(connect(), 16); }

TEST_F(GuestAgentTest, AThousandStreamsAreServedAtOnce) {
  constexpr rlim_t kDescriptors = 4096;
  const rlimit limit{kDescriptors, kDescriptors};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::optional<AgentClient>> clients(1000);
  // Some at a time: most of the time that a stream takes to come up, both ends wait for each other.
  std::array<std::string, 8> why;
  {
    std::vector<std::jthread> dialers;
    for (size_t first = 0; first < why.size(); ++first) {
      dialers.emplace_back([&clients, &why, first] {
        for (size_t index = first; index < clients.size() && why[first].empty(); index += why.size()) {
          auto client = AgentClient::connect(guest().vsock(), kHangLimit);
          if (client) {
            clients[index].emplace(std::move(*client));
          } else {
            why[first] = std::to_string(index) + ": " + client.error().message();
          }
        }
      });
    }
  }
  for (const std::string& reason : why) {
    ASSERT_EQ(reason, "");
  }
  for (auto& client : clients) {
    ASSERT_TRUE(client->request(agent::PingRequest{}));
  }
  for (auto& client : clients) {
    const auto pong = client->reply<agent::PingReply>(agent::Deadline(std::chrono::seconds(300)));
    ASSERT_TRUE(pong) << pong.error().message();
  }
}

TEST_F(GuestAgentTest, AHostThatStopsReadingStallsOnlyItsOwnStream) {
  AgentClient stalled = connect();
  ASSERT_TRUE(stalled.ask<agent::ExecStarted>(agent::ExecRequest{.arguments = {"yes"}}));
  for (int count = 0; count < 5; ++count) {
    EXPECT_EQ(guest().run("echo alive").output, "alive\n");
  }
}

TEST_F(GuestAgentTest, GarbageFromTheHostDoesNoHarm) {
  const std::string garbage(1U << 20, '\xa5');
  for (int count = 0; count < 8; ++count) {
    const auto socket = control::dial_vsock(guest().vsock(), agent::kAgentPort, agent::Deadline(kHangLimit));
    ASSERT_TRUE(socket) << socket.error().message();
    // Ends early once the agent has seen what it is.
    static_cast<void>(::send(socket->get(), garbage.data() + count, garbage.size() - 8, MSG_NOSIGNAL));
  }
  expect_alive();
}

TEST_F(GuestAgentTest, TheClockIsStepped) {
  EXPECT_EQ(guest().agent({"set-time", "1000000000"}).status, 0);
  EXPECT_EQ(guest().run("date +%s").output.substr(0, 6), "100000");
  EXPECT_EQ(guest().agent({"set-time"}).status, 0);
  EXPECT_NE(guest().run("date +%s").output.substr(0, 6), "100000");
}

TEST_F(GuestAgentTest, TheRandomPoolIsReseeded) {
  const CommandResult reseed = guest().agent({"reseed"});
  EXPECT_EQ(reseed.status, 0) << reseed.errors;
}

TEST_F(GuestAgentTest, StolenTimeIsThereAndPreemptionSaysWhyItIsNot) {
  const CommandResult state = guest().agent({"pv-state", "--json"});
  ASSERT_EQ(state.status, 0) << state.errors;
  EXPECT_NE(state.output.find("{\"vcpu\":1,\"stolen_ns\":"), std::string::npos) << state.output;
  EXPECT_NE(state.output.find("\"no_preemption\":\""), std::string::npos) << state.output;
}

TEST_F(GuestAgentTest, EventsTellOfTheEndOfTheBootAndOfMemoryThatRanOut) {
  ChildProcess events(guest().agent_command({"events", "--json"}));
  ASSERT_TRUE(events.wait_for("\"boot-finished\"", 0, kHangLimit)) << events.errors();
  AgentClient hog = connect();
  ASSERT_TRUE(hog.ask<agent::ExecStarted>(
      agent::ExecRequest{.arguments = {"dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1000000"}}));
  EXPECT_EQ(guest().run("usleep 500000; echo f > /proc/sysrq-trigger").status, 0);
  EXPECT_TRUE(events.wait_for("\"kind\":\"oom\"", 0, kHangLimit)) << events.output();
  events.signal(SIGINT);
  EXPECT_EQ(events.wait(kHangLimit), 0) << events.errors();
}

TEST_F(GuestAgentTest, FrozenFileSystemsThawWhenAskedTo) {
  ASSERT_NO_FATAL_FAILURE(mount_disk());
  ChildProcess freeze(guest().agent_command({"freeze", "--timeout", "600"}));
  ASSERT_TRUE(freeze.wait_for("/mnt\n", 0, kHangLimit)) << freeze.errors();
  const CommandResult refused = guest().run("true");
  EXPECT_EQ(refused.status, 125);
  EXPECT_EQ(refused.errors, "tandem: agent: exec: file systems are frozen\n");
  EXPECT_EQ(guest().agent({"thaw"}).status, 0);
  EXPECT_EQ(freeze.wait(kHangLimit), 0) << freeze.errors();
  EXPECT_EQ(guest().run("echo written > /mnt/file && sync && cat /mnt/file").output, "written\n");
}

TEST_F(GuestAgentTest, AFileSystemThatAnotherHidesKeepsNoneFromFreezing) {
  ASSERT_NO_FATAL_FAILURE(mount_disk());
  const CommandResult hidden = guest().run("mke2fs /dev/vda && mount -t ext4 /dev/vda /mnt");
  ASSERT_EQ(hidden.status, 0) << hidden.output << hidden.errors;
  ChildProcess freeze(guest().agent_command({"freeze", "--timeout", "600"}));
  EXPECT_TRUE(freeze.wait_for("/mnt\n", 0, kHangLimit)) << freeze.errors();
  EXPECT_EQ(guest().agent({"thaw"}).status, 0);
  EXPECT_EQ(freeze.wait(kHangLimit), 0) << freeze.errors();
  EXPECT_EQ(freeze.output(), "mount_points:\n  /mnt\n");
  EXPECT_EQ(guest().run("umount /mnt && echo there > /mnt/file").status, 0) << "the hidden one is not frozen";
}

TEST_F(GuestAgentTest, ATaskThatHangsIsSeen) {
  ASSERT_NO_FATAL_FAILURE(mount_disk());
  // Not on the console, which has to stay that of a healthy guest.
  ASSERT_EQ(guest().run("dmesg -n 1; echo 1 > /proc/sys/kernel/hung_task_timeout_secs").status, 0);
  AgentClient writer = connect();
  ASSERT_TRUE(writer.ask<agent::ExecStarted>(agent::ExecRequest{
      .arguments = {"sh", "-c",
                    "while :; do [ -e /run/tandem-agent/frozen ] && echo > /mnt/hangs; usleep 10000; done"}}));
  std::string messages;
  do {
    guest().agent({"freeze", "--timeout", "4"});
    messages = guest().new_kernel_messages();
  } while (messages.find("blocked for more than") == std::string::npos);
  EXPECT_NE(complaint_in(messages), "");
  EXPECT_EQ(guest().run("echo 600 > /proc/sys/kernel/hung_task_timeout_secs; dmesg -n 4").status, 0);
}

TEST_F(GuestAgentTest, ALostConnectionThaws) {
  ASSERT_NO_FATAL_FAILURE(mount_disk());
  ChildProcess freeze(guest().agent_command({"freeze", "--timeout", "3000"}));
  ASSERT_TRUE(freeze.wait_for("/mnt\n", 0, kHangLimit)) << freeze.errors();
  freeze.signal(SIGKILL);
  CommandResult written;
  do {
    written = guest().run("echo again > /mnt/file && sync && cat /mnt/file");
  } while (written.status == 125);  // as long as it is frozen; the time limit of the program ends it otherwise
  EXPECT_EQ(written.output, "again\n");
}

TEST_F(GuestAgentTest, TheTimeOutThaws) {
  ASSERT_NO_FATAL_FAILURE(mount_disk());
  CommandResult freeze;
  unsigned seconds = 1;
  do {  // one that takes longer than that to freeze is given up
    freeze = guest().agent({"freeze", "--timeout", std::to_string(seconds)});
    seconds *= 2;
  } while (freeze.errors.ends_with("did not freeze in time\n"));
  EXPECT_EQ(freeze.status, 1);
  EXPECT_EQ(freeze.errors, "tandem: agent: freeze: thawed by itself, because the time was over\n");
}

TEST_F(GuestAgentTest, AnAgentThatIsKilledWhileFrozenIsReplacedByOneThatThaws) {
  ASSERT_NO_FATAL_FAILURE(mount_disk());
  ChildProcess freeze(guest().agent_command({"freeze", "--timeout", "3000"}));
  // A killer that is running before nothing can be started any more.
  AgentClient killer = connect();
  ASSERT_TRUE(killer.ask<agent::ExecStarted>(
      agent::ExecRequest{.arguments = {"sh", "-c",
                                       "until [ -e /run/tandem-agent/frozen ]; do usleep 50000; done; "
                                       "usleep 200000; killall -9 tandem-agent"}}));
  EXPECT_EQ(freeze.wait(kHangLimit), 1);
  CommandResult written;
  do {
    written = guest().agent({"--wait", "300", "exec", "--", "sh", "-c", "echo thawed > /mnt/file && cat /mnt/file"});
  } while (written.status == 125);
  EXPECT_EQ(written.output, "thawed\n");
}

TEST_F(GuestAgentTest, AnAgentThatIsKilledEndsExecWithOneLineAndComesBack) {
  const CommandResult result = guest().run("killall -9 tandem-agent; sleep 1000");
  EXPECT_EQ(result.status, 125);
  EXPECT_EQ(result.errors, "tandem: agent: exec: the connection has ended\n");
  expect_alive();
}

TEST_F(GuestAgentTest, AnAgentOfAnOlderProtocolInItsPlaceIsNamed) {
  const std::string peer = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "vsock_peer";
  ASSERT_EQ(guest().agent({"put", peer, "/tmp/old-agent", "--mode", "700"}).status, 0);
  // The stand-in tries for the port from before the agent's end on, and so is there before the next agent.
  EXPECT_EQ(guest().run("setsid /tmp/old-agent old-agent > /dev/null 2>&1 & sleep 1; killall -9 tandem-agent").status,
            125);
  CommandResult ping;
  do {
    ping = guest().agent({"ping"});
  } while (ping.errors.ends_with(": nothing in the guest listens\n"));
  EXPECT_EQ(ping.status, 1);
  EXPECT_EQ(ping.errors, "tandem: agent: " + guest().vsock() +
                             ": the guest's agent (0.0.1) speaks protocols 0 to 0, this program 1 to 1\n");
  expect_alive();
}

TEST_F(GuestAgentTest, TheLongestRequestsAreAnswered) {
  // One argument is 128 KiB at most, so that only several make a request that is too long.
  const std::string text(120'000, 'x');
  const CommandResult unknown = guest().agent({"get", "/" + std::string(100'000, 'x')});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_TRUE(unknown.errors.starts_with("tandem: agent: get: /xxx")) << unknown.errors;
  const CommandResult too_long = guest().agent({"exec", "--", "echo", text, text});
  EXPECT_EQ(too_long.status, 125);
  EXPECT_TRUE(too_long.errors.ends_with("at most 131072 are allowed\n")) << too_long.errors;
  expect_alive();
}

class SoakGuestAgentTest : public GuestAgentTest {};

TEST_F(SoakGuestAgentTest, AGibibyteGoesThroughAndComesBackTheSame) { expect_echo(connect(), 1024); }

}  // namespace
}  // namespace tandem::tests
