// SPDX-License-Identifier: Apache-2.0
// A Linux guest under load moves back and forth.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/harness/capabilities.hpp"
#include "tests/migration/moving_guest.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

class LinuxMigrationTest : public testing::Test {
 protected:
  static constexpr size_t kDiskBytes = 16U << 20;

  void SetUp() override {
    folder_ = fs::temp_directory_path() / "migration-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    std::ofstream(folder_ + "/disk").close();
    fs::resize_file(folder_ + "/disk", kDiskBytes);
    // Copies of its own: these files are to be gone once it has moved.
    fs::copy_file(variable("TANDEM_GUEST_KERNEL"), folder_ + "/kernel");
    fs::copy_file(variable("TANDEM_GUEST_INITRAMFS"), folder_ + "/initramfs");
    guest_.emplace(
        std::vector<std::string>{"tandem", "run", "--kernel", folder_ + "/kernel", "--initrd", folder_ + "/initramfs",
                                 "--cpus", "2", "--memory", std::to_string(guest_kernel().least_memory_mib) + "M",
                                 "--disk", folder_ + "/disk,id=data", "--vsock", vsock(0), "--console", "stdio",
                                 "--cmdline", kKernelParameters + "tandem.exec=\"sleep 2147483647\""},
        folder_, [this](unsigned move) {
          return std::vector<std::string>{"--disk", "data=" + folder_ + "/disk", "--vsock", vsock(move), "--console",
                                          "stdio"};
        });
    ASSERT_TRUE(wait_for_agent());
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// The socket of its vsock device, before the first move and after each.
  [[nodiscard]] std::string vsock(unsigned move) const { return folder_ + "/vsock" + std::to_string(move); }
  CommandResult agent(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"tandem", "agent", vsock(guest_->moves())};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_on_host(command);
  }
  bool wait_for_agent() {
    const CommandResult ping = agent({"--wait", std::to_string(kHangLimit.count() / 2), "ping"});
    EXPECT_EQ(ping.status, 0) << ping.errors << guest_->process().errors();
    return ping.status == 0;
  }
  CommandResult in_guest(const std::string& script) { return agent({"exec", "--", "sh", "-c", script}); }

  std::string folder_;
  std::optional<MovingGuest> guest_;
};

TEST_F(LinuxMigrationTest, MovesFiveTimesUnderLoadAndBootsAgainWithoutItsFiles) {
  const CommandResult started = in_guest(
      "cat >/tmp/load <<'END'\n"
      "n=0\n"
      "while [ ! -e /tmp/stop ]; do\n"
      "  n=$((n+1)); offset=$((n % 12)); dd if=/dev/urandom of=/tmp/block bs=64k count=1 2>/dev/null\n"
      "  dd if=/tmp/block of=/dev/vda bs=64k seek=$offset conv=fsync 2>/dev/null\n"
      "  echo 3 >/proc/sys/vm/drop_caches\n"
      "  dd if=/dev/vda of=/tmp/back bs=64k skip=$offset count=1 2>/dev/null\n"
      "  cmp /tmp/block /tmp/back || echo LOST $n >>/tmp/faults\n"
      "  echo $n >/tmp/blocks\n"
      "done\n"
      "END\n"
      "cat >/tmp/clock <<'END'\n"
      "last=0\n"
      "while [ ! -e /tmp/stop ]; do\n"
      "  read now rest </proc/uptime; now=${now%.*}${now#*.}\n"
      "  [ $now -ge $last ] || echo BACK $last $now >>/tmp/faults\n"
      "  last=$now; usleep 1000\n"
      "done\n"
      "END\n"
      "sh /tmp/load >/dev/null 2>&1 & sh /tmp/clock >/dev/null 2>&1 & echo started");
  ASSERT_EQ(started.output, "started\n") << started.errors;
  for (int round = 0; round < 5; ++round) {
    const CommandResult moved = guest_->move({"--downtime", "2000"});
    ASSERT_EQ(moved.status, 0) << moved.errors;
    EXPECT_EQ(guest_->last_process().wait(), 0) << guest_->last_process().errors();
    ASSERT_TRUE(wait_for_agent());
    const CommandResult interrupts = in_guest(
        "for cpu in 0 1; do taskset -c $cpu sleep 0.01 && echo ran; done; n=$(cat /tmp/blocks 2>/dev/null || echo 0);"
        " while [ \"$(cat /tmp/blocks 2>/dev/null || echo 0)\" -lt $((n+2)) ]; do sleep 0.1; done; echo wrote");
    EXPECT_EQ(interrupts.output, "ran\nran\nwrote\n") << interrupts.errors;
  }
  const CommandResult faults = in_guest("touch /tmp/stop; sleep 1; cat /tmp/faults 2>/dev/null; dmesg");
  EXPECT_EQ(faults.output.find("LOST"), std::string::npos) << faults.output;
  EXPECT_EQ(faults.output.find("BACK"), std::string::npos) << faults.output;
  expect_healthy(faults.output);

  fs::remove(folder_ + "/kernel");
  fs::remove(folder_ + "/initramfs");
  ASSERT_EQ(in_guest("echo here >/tmp/before").status, 0);
  [[maybe_unused]] const auto asked = agent({"exec", "--", "sh", "-c", "echo b >/proc/sysrq-trigger"});
  CommandResult looked;
  do {  // the agent of the guest before may answer still
    ASSERT_TRUE(wait_for_agent());
    looked = in_guest("cat /tmp/before 2>/dev/null; echo up");
  } while (looked.output != "up\n");
  agent({"shutdown"});
  EXPECT_EQ(guest_->process().wait(kHangLimit), 0) << guest_->process().errors();
}

TEST_F(LinuxMigrationTest, AReceiverThatLacksADiskSaysSoAndTheGuestGoesOn) {
  const auto receiver = guest_->start_receiver({"--vsock", folder_ + "/other", "--console", "none"});
  const CommandResult checked = guest_->migrate({"--check"});
  EXPECT_EQ(checked.status, 1);
  EXPECT_NE(checked.output.find("--disk data"), std::string::npos) << checked.output;
  const CommandResult moved = guest_->migrate({});
  EXPECT_EQ(moved.status, 1);
  EXPECT_NE(moved.errors.find("--disk data"), std::string::npos) << moved.errors;
  auto refusing = receiver->wait();
  EXPECT_EQ(refusing, 1) << receiver->errors();
  EXPECT_EQ(in_guest("echo alive").output, "alive\n");
}

}  // namespace
}  // namespace tandem::tests
