// SPDX-License-Identifier: Apache-2.0
// A VM under the hands of other processes: `tandem list`, `status`, `pause`, `console` and the rest, with a bare-metal guest.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <termios.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"
#include "tests/harness/vmm_threads.hpp"

namespace tandem::tests {
namespace {

using nlohmann::json;

constexpr std::string_view kDetach = "\x01x";

/// How a command ended.
struct Ended {
  std::optional<int> status;
  std::string output;
  std::string errors;
};

Ended run(const std::vector<std::string>& command) {
  ChildProcess process(command);
  process.close_input();
  const auto status = process.wait();
  return {status, process.output(), process.errors()};
}

Ended tandem(std::vector<std::string> words) {
  words.insert(words.begin(), "tandem");
  return run(words);
}

json status_of(const std::string& name) {
  const Ended ended = tandem({"status", name, "--json"});
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return json::parse(ended.output, nullptr, false);
}

/// Drives the payload `reset`, which says READY and waits for one character at each boot.
class ControlTest : public testing::Test {
 protected:
  void start(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--name", name_});
    vm_.emplace(run_command({.payload = "reset", .cmdline = "quiet=1", .vcpu_count = 2, .options = options}));
  }
  bool boot() {
    const auto place = vm_->wait_for("READY", seen_);
    seen_ = place.value_or(seen_);
    return place.has_value();
  }
  void expect_power_off() {
    vm_->send("q");
    EXPECT_EQ(vm_->wait(), 0) << transcript();
  }
  std::string transcript() { return "console:\n" + vm_->output() + "\nstderr:\n" + vm_->errors(); }

  const std::string name_ = "control-test";
  std::optional<ChildProcess> vm_;
  size_t seen_ = 0;
};

TEST_F(ControlTest, ListAndStatusShowIt) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  const json list = json::parse(tandem({"list", "--json"}).output);
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["name"], name_);
  const json status = status_of(name_);
  EXPECT_EQ(status["pid"], vm_->pid());
  EXPECT_EQ(status["state"], "running");
  EXPECT_EQ(status["reset_count"], 0);
  std::vector<pid_t> threads;
  for (const json& vcpu : status["vcpus"]) {
    threads.push_back(vcpu["thread"].get<pid_t>());
  }
  EXPECT_EQ(threads, vcpu_threads(vm_->pid()));
  EXPECT_NE(tandem({"list"}).output.find(name_), std::string::npos);
  EXPECT_NE(tandem({"status", name_}).output.find("state: running\n"), std::string::npos);
  expect_power_off();
  EXPECT_EQ(tandem({"list", "--json"}).output, "[]\n");
}

TEST_F(ControlTest, AVmThatIsNotThereIsSaidSoInOneLine) {
  for (const char* const command : {"status", "pause", "resume", "reset", "stop", "balloon", "console"}) {
    const Ended ended = tandem({command, "nobody"});
    EXPECT_EQ(ended.status, 1) << command;
    EXPECT_TRUE(ended.errors.starts_with(std::string("tandem: ") + command + ": nobody: no virtual machine"))
        << ended.errors;
  }
}

TEST_F(ControlTest, OneThatStartsPausedRunsNothingBeforeItIsResumed) {
  start({"--paused"});
  while (tandem({"status", name_}).status != 0) {
    ASSERT_FALSE(vm_->wait(ChildProcess::Seconds(0))) << transcript();
  }
  EXPECT_EQ(status_of(name_)["state"], "paused");
  EXPECT_FALSE(vm_->wait_for("READY", 0, ChildProcess::Seconds(1))) << transcript();
  ASSERT_EQ(tandem({"resume", name_}).status, 0);
  ASSERT_TRUE(boot()) << transcript();
  EXPECT_EQ(status_of(name_)["state"], "running");
  expect_power_off();
}

TEST_F(ControlTest, AResetOfAPausedVmBootsWhenItIsResumed) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  EXPECT_EQ(tandem({"pause", name_}).status, 0);
  EXPECT_EQ(tandem({"pause", name_}).status, 0) << "a second time";
  EXPECT_EQ(tandem({"reset", name_}).status, 0);
  const json status = status_of(name_);
  EXPECT_EQ(status["state"], "paused");
  EXPECT_EQ(status["reset_count"], 1);
  EXPECT_EQ(tandem({"resume", name_}).status, 0);
  ASSERT_TRUE(boot()) << transcript();
  EXPECT_EQ(tandem({"resume", name_}).status, 0) << "a second time";
  EXPECT_EQ(tandem({"reset", name_}).status, 0);
  ASSERT_TRUE(boot()) << transcript();
  EXPECT_EQ(status_of(name_)["reset_count"], 2);
  expect_power_off();
}

TEST_F(ControlTest, ManyPausesLoseNoKey) {
  constexpr unsigned kBoots = 10;
  start();
  ASSERT_TRUE(boot()) << transcript();
  for (unsigned count = 1; count < kBoots; ++count) {
    ASSERT_EQ(tandem({"pause", name_}).status, 0);
    vm_->send("r");
    ASSERT_EQ(tandem({"resume", name_}).status, 0);
    ASSERT_TRUE(boot()) << count << "\n" << transcript();
  }
  expect_power_off();
}

TEST_F(ControlTest, ASecondVmOfTheNameIsRefusedBeforeItTouchesAnything) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  const std::string precious = testing::TempDir() + "precious";
  std::ofstream(precious) << "contents";
  const Ended second =
      run(run_command({.payload = "reset", .options = {"--name", name_, "--console", "file=" + precious}}));
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.errors,
            "tandem: run: control socket: a virtual machine of the name 'control-test' is there already\n");
  EXPECT_EQ(std::filesystem::file_size(precious), 8U);
  std::filesystem::remove(precious);
  expect_power_off();
}

TEST_F(ControlTest, TheNameOfAKilledVmIsFree) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  vm_->signal(SIGKILL);
  EXPECT_EQ(vm_->wait(), 128 + SIGKILL);
  EXPECT_EQ(tandem({"list", "--json"}).output, "[]\n");
  EXPECT_EQ(tandem({"status", name_}).status, 1);
  seen_ = 0;
  start();
  ASSERT_TRUE(boot()) << transcript();
  EXPECT_EQ(status_of(name_)["state"], "running");
  expect_power_off();
}

TEST_F(ControlTest, AConsoleReplaysTakesKeysAndGivesTheTerminalBack) {
  start({"--console", "none"});
  ASSERT_TRUE([&] {  // nothing else tells that it is there
    while (tandem({"status", name_}).status != 0) {
      if (vm_->wait(ChildProcess::Seconds(0))) {
        return false;
      }
    }
    return true;
  }()) << transcript();
  ChildProcess console({"tandem", "console", name_}, ChildProcess::Streams::kTerminal);
  termios before{};
  ASSERT_EQ(::tcgetattr(console.terminal(), &before), 0);
  const auto first = console.wait_for("READY");
  ASSERT_TRUE(first) << console.output();
  console.send("r");
  ASSERT_TRUE(console.wait_for("READY", *first)) << console.output();
  console.send(kDetach);
  EXPECT_EQ(console.wait(), 0) << console.output();
  EXPECT_NE(console.output().find("detached"), std::string::npos) << console.output();
  termios after{};
  ASSERT_EQ(::tcgetattr(console.terminal(), &after), 0);
  EXPECT_EQ(before.c_lflag, after.c_lflag);
  EXPECT_EQ(before.c_iflag, after.c_iflag);

  ChildProcess again({"tandem", "console", name_}, ChildProcess::Streams::kTerminal);
  const auto replayed = again.wait_for("READY");
  ASSERT_TRUE(replayed && again.wait_for("READY", *replayed)) << again.output();
  EXPECT_EQ(tandem({"console", name_}).errors,
            "tandem: console: control-test: another client is attached to the console\n");
  again.send("q");
  EXPECT_EQ(again.wait(), 0) << again.output();
  EXPECT_EQ(vm_->wait(), 0) << transcript();
}

TEST_F(ControlTest, AKilledConsoleClientLeavesTheConsoleFree) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  {
    ChildProcess console({"tandem", "console", name_});
    ASSERT_TRUE(console.wait_for("READY")) << console.errors();
    console.signal(SIGKILL);
    EXPECT_EQ(console.wait(), 128 + SIGKILL);
  }
  ChildProcess console({"tandem", "console", name_});
  ASSERT_TRUE(console.wait_for("READY")) << console.errors();
  console.send("q");
  EXPECT_EQ(console.wait(), 0) << console.errors();
  EXPECT_EQ(vm_->wait(), 0) << transcript();
}

TEST_F(ControlTest, StopEndsByForceAGuestThatDoesNotListen) {
  start();
  ASSERT_TRUE(boot()) << transcript();
  const Ended gentle = tandem({"stop", name_, "--timeout", "0"});
  EXPECT_EQ(gentle.status, 1);
  EXPECT_EQ(gentle.errors, "tandem: stop: control-test: the virtual machine still runs after 0 s (--force ends it)\n");
  EXPECT_EQ(tandem({"pause", name_}).status, 0);
  EXPECT_EQ(tandem({"stop", name_}).errors,
            "tandem: stop: control-test: the virtual machine is paused: its guest cannot see the power key\n");
  EXPECT_EQ(tandem({"stop", name_, "--force"}).status, 0);
  EXPECT_EQ(vm_->wait(), 1) << transcript();
  EXPECT_NE(vm_->errors().find("tandem: run: stopped by force\n"), std::string::npos) << vm_->errors();
  EXPECT_EQ(tandem({"list", "--json"}).output, "[]\n");
}

TEST_F(ControlTest, ASocketPathThatIsTooLongIsRefused) {
  const std::string deep = testing::TempDir() + std::string(100, 'd');
  std::vector<std::string> command{"env", "TANDEM_RUNTIME_DIR=" + deep};
  const auto rest = run_command({.payload = "reset", .options = {"--name", name_}});
  command.insert(command.end(), rest.begin(), rest.end());
  const Ended ended = run(command);
  EXPECT_EQ(ended.status, 1);
  const std::string path = deep + "/control-test.sock";
  EXPECT_EQ(ended.errors, "tandem: run: control socket: " + path +
                              ": the path of a socket has at most 107 bytes, and this one " +
                              std::to_string(path.size()) + "\n");
}

}  // namespace
}  // namespace tandem::tests
