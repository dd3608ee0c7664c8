// SPDX-License-Identifier: Apache-2.0
// A VM that is saved and goes on: all that a CPU holds is the same afterwards, and what cannot go on is refused.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

/// A VM in a directory of its own below /tmp, and its snapshots there.
class SaveTest : public testing::Test {
 protected:
  SaveTest() {
    fs::remove_all(place_);
    fs::create_directory(place_);
  }
  ~SaveTest() override {
    vm_.reset();
    fs::remove_all(place_);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return place_ / name; }

  /// Boots the payload and waits until it is ready.
  void start(const std::string& payload, unsigned vcpus, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--name", name_});
    vm_.emplace(run_command({.payload = payload, .cmdline = "quiet=1", .vcpu_count = vcpus, .options = options}));
    ASSERT_TRUE(vm_->wait_for("READY")) << transcript();
  }

  /// Runs `tandem` with these words. @return its status, and what it said on stderr in `said_`.
  std::optional<int> tandem(std::vector<std::string> words) {
    words.insert(words.begin(), "tandem");
    ChildProcess process(words);
    process.close_input();
    const auto status = process.wait();
    said_ = process.errors();
    return status;
  }

  /// Saves the VM and ends it.
  void save_and_stop(const std::string& directory) {
    ASSERT_EQ(tandem({"save", name_, path(directory), "--stop"}), 0) << said_;
    ASSERT_EQ(vm_->wait(), 0) << transcript();
  }

  void restore(const std::string& directory, std::vector<std::string> options = {}) {
    std::vector<std::string> words{"tandem", "restore", path(directory)};
    words.insert(words.end(), options.begin(), options.end());
    vm_.emplace(words);
  }

  /// Waits until the restored VM answers.
  void wait_until_up() {
    constexpr unsigned kTries = 1000;
    for (unsigned tries = 0; tries < kTries && tandem({"status", name_}) != 0; ++tries) {
    }
  }

  /// Has the payload `state` look at what it holds.
  void expect_all_as_it_was() { expect_all_as_it_was(*vm_); }
  static void expect_all_as_it_was(ChildProcess& vm) {
    vm.send("g");
    EXPECT_EQ(vm.wait(), 0) << vm.output() << vm.errors();
    const GuestReport report = parse_report(vm.output());
    EXPECT_EQ(report.exit, 0) << vm.output() << vm.errors();
    EXPECT_TRUE(report.failures.empty()) << vm.output();
  }

  /// How much of the disk a file takes [512 bytes].
  [[nodiscard]] long blocks_of(const std::string& file) const {
    struct stat status{};
    EXPECT_EQ(::stat(path(file).c_str(), &status), 0) << path(file);
    return status.st_blocks;
  }

  std::string transcript() { return "console:\n" + vm_->output() + "\nstderr:\n" + vm_->errors(); }

  const fs::path place_ = fs::path("/tmp") / ("save-test-" + std::to_string(::getpid()));
  const std::string name_ = "save-test";
  std::optional<ChildProcess> vm_;
  std::string said_;
};

/// How many vCPUs there are, and how RAM is taken over.
struct RestoreCase {
  const char* name;
  unsigned vcpus;
  std::vector<std::string> options;
};

class StateTest : public SaveTest, public testing::WithParamInterface<RestoreCase> {};

TEST_P(StateTest, AllThatTheCpusHoldIsTheSameAfterTwoMoves) {
  const auto& [name, vcpus, options] = GetParam();
  ASSERT_NO_FATAL_FAILURE(start("state", vcpus));
  ASSERT_NO_FATAL_FAILURE(save_and_stop("first"));
  restore("first", options);
  wait_until_up();
  // A machine whose memory is mapped from a snapshot is saved whole.
  ASSERT_EQ(tandem({"save", name_, path("second"), "--stop"}), 0) << said_ << transcript();
  ASSERT_EQ(vm_->wait(), 0) << transcript();
  fs::remove_all(path("first"));
  restore("second", options);
  expect_all_as_it_was();
}

const RestoreCase kCases[] = {{.name = "OneCpu", .vcpus = 1, .options = {}},
                              {.name = "FourCpus", .vcpus = 4, .options = {}},
                              {.name = "FourCpusEagerly", .vcpus = 4, .options = {"--eager"}}};
INSTANTIATE_TEST_SUITE_P(Save, StateTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

class MoveTest : public SaveTest, public testing::WithParamInterface<unsigned> {};

TEST_P(MoveTest, AllThatTheCpusHoldIsTheSameAfterALiveMigration) {
  ASSERT_NO_FATAL_FAILURE(start("state", GetParam()));
  const std::string address = "unix:" + path("receive");
  ChildProcess arrived({"tandem", "receive", address, "--name", "arrived", "--console", "stdio"});
  while (!fs::is_socket(path("receive")) && !arrived.wait(ChildProcess::Seconds(0))) {
  }
  ASSERT_EQ(tandem({"migrate", name_, address, "--verify"}), 0) << said_ << arrived.errors();
  EXPECT_EQ(vm_->wait(), 0) << transcript();
  expect_all_as_it_was(arrived);
}

INSTANTIATE_TEST_SUITE_P(Cpus, MoveTest, testing::Values(1U, 4U),
                         [](const auto& row) { return "Cpus" + std::to_string(row.param); });

TEST_F(SaveTest, ASaveLetsTheMachineGoOn) {
  ASSERT_NO_FATAL_FAILURE(start("state", 2));
  ASSERT_EQ(tandem({"save", name_, path("first")}), 0) << said_;
  ASSERT_EQ(tandem({"save", name_, path("first")}), 1);
  EXPECT_NE(said_.find(path("first")), std::string::npos) << said_;
  ASSERT_EQ(tandem({"save", name_, path("first"), "--replace"}), 0) << said_;
  expect_all_as_it_was();
  restore("first");
  expect_all_as_it_was();
}

TEST_F(SaveTest, ARestoredGuestResetsWithoutTheFilesItWasStartedFrom) {
  fs::copy_file(payload_image("reset"), path("Image"));
  vm_.emplace(std::vector<std::string>{"tandem", "run", "--kernel", path("Image"), "--memory", "64M", "--cmdline",
                                       "quiet=1", "--name", name_});
  ASSERT_TRUE(vm_->wait_for("READY")) << transcript();
  ASSERT_NO_FATAL_FAILURE(save_and_stop("saved"));
  fs::remove(path("Image"));
  restore("saved");
  vm_->send("r");
  ASSERT_TRUE(vm_->wait_for("READY")) << transcript();
  vm_->send("q");
  EXPECT_EQ(vm_->wait(), 0) << transcript();
  EXPECT_EQ(parse_report(vm_->output()).exit, 0) << transcript();
}

TEST_F(SaveTest, TwoCopiesRunSideBySide) {
  ASSERT_NO_FATAL_FAILURE(start("state", 1));
  ASSERT_NO_FATAL_FAILURE(save_and_stop("saved"));
  restore("saved", {"--name", "copy-a"});
  ChildProcess other(std::vector<std::string>{"tandem", "restore", path("saved"), "--name", "copy-b"});
  expect_all_as_it_was(other);
  expect_all_as_it_was();
}

TEST_F(SaveTest, AMachineRestoredPausedWaits) {
  ASSERT_NO_FATAL_FAILURE(start("state", 1));
  ASSERT_NO_FATAL_FAILURE(save_and_stop("saved"));
  restore("saved", {"--paused"});
  wait_until_up();
  ASSERT_EQ(tandem({"resume", name_}), 0) << said_;
  expect_all_as_it_was();
}

TEST_F(SaveTest, MemoryThatIsCutOffEndsTheMachineByOneLine) {
  ASSERT_NO_FATAL_FAILURE(start("state", 1));
  ASSERT_NO_FATAL_FAILURE(save_and_stop("saved"));
  restore("saved", {"--paused", "--log-level", "error"});
  wait_until_up();
  fs::resize_file(path("saved") + "/ram", 4096);
  ASSERT_EQ(tandem({"resume", name_}), 0) << said_;
  vm_->send("g");
  EXPECT_EQ(vm_->wait(), 1) << transcript();
  EXPECT_EQ(std::ranges::count(vm_->errors(), '\n'), 1) << vm_->errors();
  EXPECT_NE(vm_->errors().find(path("saved") + "/ram"), std::string::npos) << vm_->errors();
}

/// A guest that finds each page which a difference has missed, or has from another moment.
class DifferenceTest : public SaveTest {
 protected:
  /// Until each page has been written again.
  void wait_for_rounds() {
    rounds_at_ = vm_->output().size();
    for (unsigned line = 0; line < 2; ++line) {
      const auto place = vm_->wait_for("ROUND ", rounds_at_);
      ASSERT_TRUE(place) << transcript();
      rounds_at_ = *place + 1;
    }
  }
  void save_difference(const std::string& name, const std::string& base) {
    ASSERT_NO_FATAL_FAILURE(wait_for_rounds());
    ASSERT_EQ(tandem({"save", name_, path(name), "--diff", path(base)}), 0) << said_;
  }
  void restore_and_look(const std::string& name, std::vector<std::string> options = {}) {
    vm_.reset();
    restore(name, std::move(options));
    ASSERT_NO_FATAL_FAILURE(wait_for_rounds());
    expect_all_as_it_was();
  }

  /// All of RAM, as a full snapshot has it.
  [[nodiscard]] std::string ram_of(const std::string& name) const {
    constexpr size_t kRamBytes = 64U << 20;
    std::ifstream file(path(name) + "/ram", std::ios::binary);
    std::string bytes(kRamBytes, '\0');
    EXPECT_TRUE(file.read(bytes.data(), kRamBytes)) << path(name);
    return bytes;
  }

 private:
  size_t rounds_at_ = 0;
};

TEST_F(DifferenceTest, EachSnapshotOfAChainGoesOnFromItsOwnMoment) {
  vm_.emplace(
      run_command({.payload = "ram_writer", .cmdline = "pages=512", .vcpu_count = 2, .options = {"--name", name_}}));
  ASSERT_NO_FATAL_FAILURE(wait_for_rounds());
  ASSERT_EQ(tandem({"save", name_, path("full")}), 0) << said_;
  ASSERT_NO_FATAL_FAILURE(save_difference("one", "full"));
  EXPECT_EQ(tandem({"save", name_, path("two"), "--diff", path("full")}), 1);
  EXPECT_NE(said_.find("last saved in, or restored from, " + path("one")), std::string::npos) << said_;
  EXPECT_EQ(tandem({"save", name_, path("full"), "--replace", "--diff", path("one")}), 1);
  EXPECT_NE(said_.find("a difference needs them to stay"), std::string::npos) << said_;
  ASSERT_NO_FATAL_FAILURE(save_difference("two", "one"));
  vm_.reset();
  restore("two");
  ASSERT_NO_FATAL_FAILURE(save_difference("three", "two"));
  EXPECT_LT(blocks_of("three/ram"), blocks_of("full/ram"));
  restore_and_look("three");
  restore_and_look("three", {"--eager"});
  restore_and_look("one");
  restore_and_look("full");
  fs::rename(path("two"), path("elsewhere"));
  EXPECT_EQ(tandem({"restore", path("three")}), 1);
  EXPECT_NE(said_.find("three: base: "), std::string::npos) << said_;
}

TEST_F(DifferenceTest, RestoringItGivesTheRamThatTheMachineHad) {
  vm_.emplace(
      run_command({.payload = "ram_writer", .cmdline = "pages=512", .vcpu_count = 2, .options = {"--name", name_}}));
  ASSERT_NO_FATAL_FAILURE(wait_for_rounds());
  ASSERT_NO_FATAL_FAILURE(save_and_stop("full"));
  restore("full");
  ASSERT_NO_FATAL_FAILURE(wait_for_rounds());
  ASSERT_EQ(tandem({"pause", name_}), 0) << said_;
  ASSERT_EQ(tandem({"save", name_, path("one"), "--diff", path("full")}), 0) << said_;
  ASSERT_NO_FATAL_FAILURE(save_and_stop("whole"));
  restore("one", {"--paused"});
  wait_until_up();
  ASSERT_NO_FATAL_FAILURE(save_and_stop("again"));
  EXPECT_TRUE(ram_of("again") == ram_of("whole"));
}

TEST_F(SaveTest, WhatCannotGoOnHereIsRefusedAndNamed) {
  ASSERT_NO_FATAL_FAILURE(start("state", 1));
  ASSERT_NO_FATAL_FAILURE(save_and_stop("saved"));
  EXPECT_EQ(tandem({"restore", path("saved"), "--disk", "root=/dev/null"}), 1);
  EXPECT_NE(said_.find("--disk: the machine has no 'root'; it has none"), std::string::npos) << said_;
  EXPECT_EQ(tandem({"restore", path("nothing")}), 1);
  EXPECT_NE(said_.find("nothing"), std::string::npos) << said_;
  fs::resize_file(path("saved") + "/state", 100);
  EXPECT_EQ(tandem({"restore", path("saved")}), 1);
  EXPECT_NE(said_.find("state"), std::string::npos) << said_;
  EXPECT_EQ(std::ranges::count(said_, '\n'), 1) << said_;
}

}  // namespace
}  // namespace tandem::tests
