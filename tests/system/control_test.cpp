// SPDX-License-Identifier: Apache-2.0
// A Linux guest under `tandem pause`, `resume`, `balloon`, `console`, `reset` and `stop`, in the testbed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/vmm_threads.hpp"
#include "tests/system/equipped_guest.hpp"

namespace tandem::tests {
namespace {

using nlohmann::json;

class LinuxControlTest : public EquippedGuestTest {
 protected:
  /// `tandem COMMAND NAME WORDS…`
  static CommandResult tandem(std::string command, const std::vector<std::string>& words = {}) {
    std::vector<std::string> all{"tandem", std::move(command), kName};
    all.insert(all.end(), words.begin(), words.end());
    return run_on_host(all);
  }
  static json status() { return json::parse(tandem("status", {"--json"}).output, nullptr, false); }
  /// The guest's monotonic clock.
  static double guest_seconds() {
    const CommandResult uptime = guest().run("cut -d' ' -f1 /proc/uptime");
    EXPECT_EQ(uptime.status, 0) << uptime.errors;
    return std::strtod(uptime.output.c_str(), nullptr);
  }
  static void expect_done(const CommandResult& result) {
    EXPECT_EQ(result.status, 0) << result.output << result.errors;
    EXPECT_EQ(result.errors, "");
  }
};

TEST_F(LinuxControlTest, StatusShowsBackEndsAndThreads) {
  const json now = status();
  EXPECT_EQ(now["pid"], guest().vmm().pid());
  EXPECT_EQ(now["state"], "running");
  std::vector<pid_t> threads;
  for (const json& vcpu : now["vcpus"]) {
    threads.push_back(vcpu["thread"].get<pid_t>());
  }
  EXPECT_EQ(threads, vcpu_threads(guest().vmm().pid()));
  const std::string text = now["back_ends"].dump();
  EXPECT_NE(text.find(folder() + "/console.log"), std::string::npos) << text;
  EXPECT_NE(text.find(folder() + "/vsock"), std::string::npos) << text;
}

TEST_F(LinuxControlTest, TheAgentIsFoundByTheName) {
  const CommandResult named = run_on_host({"tandem", "agent", kName, "exec", "--", "echo", "here"});
  EXPECT_EQ(named.status, 0) << named.errors;
  EXPECT_EQ(named.output, "here\n");
}

TEST_F(LinuxControlTest, APausedGuestStandsStillWhileItsClockGoesOn) {
  const double before = guest_seconds();
  expect_done(tandem("pause"));
  const auto paused_at = std::chrono::steady_clock::now();
  EXPECT_EQ(status()["state"], "paused");
  const pid_t vmm = guest().vmm().pid();
  std::vector<std::optional<uint64_t>> switches;
  for (const pid_t thread : vcpu_threads(vmm)) {
    switches.push_back(involuntary_switches(vmm, thread));
  }
  ::sleep(1);
  std::vector<std::optional<uint64_t>> later;
  for (const pid_t thread : vcpu_threads(vmm)) {
    later.push_back(involuntary_switches(vmm, thread));
  }
  EXPECT_EQ(switches, later) << "vCPUs that are parked take no CPU that could be taken from them";
  const std::chrono::duration<double> pause = std::chrono::steady_clock::now() - paused_at;
  expect_done(tandem("resume"));
  EXPECT_EQ(status()["state"], "running");
  constexpr double kResolution = 0.02;
  EXPECT_GE(guest_seconds() - before, pause.count() - kResolution);
}

TEST_F(LinuxControlTest, AConnectionThatIsMadeWhilePausedIsServedAfterwards) {
  expect_done(tandem("pause"));
  ChildProcess ping(guest().agent_command({"--wait", std::to_string(kHangLimit.count() / 2), "ping"}));
  ping.close_input();
  EXPECT_FALSE(ping.wait(ChildProcess::Seconds(1)));
  expect_done(tandem("resume"));
  EXPECT_EQ(ping.wait(kHangLimit), 0) << ping.errors();
  EXPECT_EQ(guest().agent({"ping"}).status, 0);
}

TEST_F(LinuxControlTest, AStreamGoesOnAfterAPause) {
  ChildProcess stream(guest().agent_command({"exec", "--", "cat"}));
  stream.send("before\n");
  ASSERT_TRUE(stream.wait_for("before\n", 0, kHangLimit)) << stream.errors();
  for (unsigned count = 0; count < 10; ++count) {
    expect_done(tandem("pause"));
    const std::string line = "line " + std::to_string(count) + "\n";
    stream.send(line);
    expect_done(tandem("resume"));
    ASSERT_TRUE(stream.wait_for(line, 0, kHangLimit)) << stream.errors();
  }
  stream.close_input();
  EXPECT_EQ(stream.wait(kHangLimit), 0) << stream.errors();
}

TEST_F(LinuxControlTest, TheBalloonGrowsAndShrinks) {
  constexpr uint64_t kBytes = 32U << 20;
  expect_done(tandem("balloon", {"32M"}));
  while (status()["balloon"]["actual_bytes"] != kBytes) {
    ASSERT_FALSE(guest().vmm().wait(ChildProcess::Seconds(0)));
  }
  EXPECT_EQ(tandem("balloon").output, "32 MiB of 32 MiB given up\n");
  expect_done(tandem("balloon", {"0"}));
  while (status()["balloon"]["actual_bytes"] != 0) {
    ASSERT_FALSE(guest().vmm().wait(ChildProcess::Seconds(0)));
  }
  EXPECT_EQ(tandem("balloon", {"1G"}).status, 1) << "more than it has";
}

TEST_F(LinuxControlTest, TheConsoleShowsWhatWasPrintedAndTakesKeys) {
  ASSERT_EQ(guest().run("echo printed before > /dev/ttyAMA0").status, 0);
  ChildProcess reader(guest().agent_command({"exec", "--", "sh", "-c", "echo ready; head -n 1 < /dev/ttyAMA0"}));
  reader.close_input();
  ASSERT_TRUE(reader.wait_for("ready", 0, kHangLimit)) << reader.errors();
  ChildProcess console({"tandem", "console", kName}, ChildProcess::Streams::kTerminal);
  const auto place = console.wait_for("printed before", 0, kHangLimit);
  ASSERT_TRUE(place) << console.output();
  console.send("typed\r");
  ASSERT_TRUE(console.wait_for("typed", *place, kHangLimit)) << "its echo in:\n" << console.output();
  EXPECT_EQ(reader.wait(kHangLimit), 0) << reader.errors();
  EXPECT_NE(reader.output().find("typed"), std::string::npos) << reader.output();
  ASSERT_EQ(guest().run("echo printed later > /dev/ttyAMA0").status, 0);
  ASSERT_TRUE(console.wait_for("printed later", *place, kHangLimit)) << console.output();
  console.send("\x01x");
  EXPECT_EQ(console.wait(kHangLimit), 0) << console.output();
  EXPECT_NE(guest().console().find("printed later"), std::string::npos) << "the back end has it, too";
}

TEST_F(LinuxControlTest, AResetBootsAgain) {
  const uint64_t before = status()["reset_count"].get<uint64_t>();
  ASSERT_EQ(guest().run("touch /tmp/first-boot").status, 0);
  expect_done(tandem("reset"));
  ASSERT_TRUE(guest().wait_for_agent());
  EXPECT_EQ(guest().run("ls /tmp/first-boot").status, 1) << "it is another boot";
  EXPECT_EQ(status()["reset_count"], before + 1);
}

}  // namespace
}  // namespace tandem::tests
