// SPDX-License-Identifier: Apache-2.0
// A Linux guest under load moves back and forth, and is saved and restored.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/migration/moving_guest.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What keeps the guest busy, and notes what should not be in /tmp/faults: blocks of the disk that are not what was written, and a
// monotonic clock that goes back.
constexpr const char* kLoad = R"sh(
cat >/tmp/disk-load <<'END'
n=0
while [ ! -e /tmp/stop ]; do
  n=$((n+1)); offset=$((n % 12)); dd if=/dev/urandom of=/tmp/block bs=64k count=1 2>/dev/null
  dd if=/tmp/block of=/dev/vda bs=64k seek=$offset conv=fsync 2>/dev/null
  echo 3 >/proc/sys/vm/drop_caches
  dd if=/dev/vda of=/tmp/back bs=64k skip=$offset count=1 2>/dev/null
  cmp /tmp/block /tmp/back || echo LOST $n >>/tmp/faults
  echo $n >/tmp/blocks
done
END
cat >/tmp/clock-load <<'END'
last=0
while [ ! -e /tmp/stop ]; do
  read now rest </proc/uptime; now=${now%.*}${now#*.}
  [ $now -ge $last ] || echo BACK $last $now >>/tmp/faults
  last=$now; usleep 1000
done
END
rm -f /tmp/stop /tmp/faults /tmp/blocks
for load in disk clock; do (sh /tmp/$load-load; touch /tmp/$load-ended) >/dev/null 2>&1 & done
echo started)sh";

// Whether each CPU still takes the interrupts of its timer and of the disk, the load still writes, and the network still works.
constexpr const char* kLook = R"sh(
dev=$(basename $(readlink -f /sys/block/vda/device))
irq=$(awk -v d=$dev '$NF == d { sub(":", "", $1); print $1 }' /proc/interrupts)
count() { awk -v d=$1 -v c=$2 '$NF == d { print $(2 + c); exit }' /proc/interrupts; }
for cpu in 0 1; do
  echo $((1 << cpu)) >/proc/irq/$irq/smp_affinity
  ticks=$(count arch_timer $cpu); reads=$(count $dev $cpu)
  taskset -c $cpu sleep 0.05
  taskset -c $cpu dd if=/dev/vda of=/dev/null bs=64k count=1 skip=200 iflag=direct 2>/dev/null
  [ $(count arch_timer $cpu) -gt $ticks ] && [ $(count $dev $cpu) -gt $reads ] && echo cpu $cpu takes interrupts
done
n=$(cat /tmp/blocks 2>/dev/null || echo 0)
while [ "$(cat /tmp/blocks 2>/dev/null || echo 0)" -lt $((n+2)) ];
do sleep 0.1;
done; echo the load writes
ping -c 3 -W 5 192.0.2.1 | grep -c 'bytes from' | sed 's/[1-3]/the host answers/')sh";
constexpr const char* kAllWell = "cpu 0 takes interrupts\ncpu 1 takes interrupts\nthe load writes\nthe host answers\n";

/// One guest for all tests: each goes on where the one before has left it. Its networks are two taps of a bridge, one for each of
/// the two processes that there are during a move.
class LinuxMigrationTest : public testing::Test {
 protected:
  static constexpr size_t kDiskBytes = 16U << 20;

  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / "migration-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ASSERT_EQ(std::system("brctl addbr moving; ip addr add 192.0.2.1/24 dev moving; ip link set moving up;"
                          " for tap in moving0 moving1; do tunctl -t $tap >/dev/null; ip link set $tap up;"
                          " brctl addif moving $tap; done"),
              0);
    std::ofstream(folder_ + "/disk").close();
    fs::resize_file(folder_ + "/disk", kDiskBytes);
    fs::copy_file(variable("TANDEM_EXT4_IMAGE"), folder_ + "/fs");
    // Copies of its own: these files are to be gone once it has moved.
    fs::copy_file(variable("TANDEM_GUEST_KERNEL"), folder_ + "/kernel");
    fs::copy_file(variable("TANDEM_GUEST_INITRAMFS"), folder_ + "/initramfs");
    std::vector<std::string> run{"tandem", "run", "--kernel", folder_ + "/kernel", "--initrd", folder_ + "/initramfs"};
    for (const char* const word : {"--cpus", "2", "--memory"}) {
      run.emplace_back(word);
    }
    run.push_back(std::to_string(guest_kernel().least_memory_mib) + "M");
    for (const std::string& word : {std::string("--disk"), folder_ + "/disk,id=data", std::string("--disk"),
                                    folder_ + "/fs,id=fs", std::string("--net"), std::string("tap=moving0,id=net"),
                                    std::string("--vsock"), vsock(0), std::string("--console"), std::string("stdio"),
                                    std::string("--cmdline"), kKernelParameters + "tandem.exec=\"sleep 2147483647\""}) {
      run.push_back(word);
    }
    guest_ = std::make_unique<MovingGuest>(std::move(run), folder_, [](unsigned move) {
      return std::vector<std::string>{"--disk",    "data=" + folder_ + "/disk",
                                      "--disk",    "fs=" + folder_ + "/fs",
                                      "--net",     "net=tap=moving" + std::to_string(move % 2),
                                      "--vsock",   vsock(move),
                                      "--console", "stdio"};
    });
    ASSERT_TRUE(wait_for_agent());
    ASSERT_EQ(in_guest("ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up").status, 0);
  }
  static void TearDownTestSuite() {
    guest_.reset();
    fs::remove_all(folder_);
    EXPECT_EQ(std::system("ip link set moving down; for tap in moving0 moving1; do tunctl -d $tap >/dev/null; done;"
                          " brctl delbr moving"),
              0);
  }

  /// The socket of its vsock device, before the first move and after each.
  static std::string vsock(unsigned move) { return folder_ + "/vsock" + std::to_string(move); }
  static CommandResult agent(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"tandem", "agent", vsock(guest_->moves())};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_on_host(command);
  }
  static bool wait_for_agent() {
    const CommandResult ping = agent({"--wait", std::to_string(kHangLimit.count() / 2), "ping"});
    EXPECT_EQ(ping.status, 0) << ping.errors << guest_->process().errors();
    return ping.status == 0;
  }
  /// Runs a shell script in the guest. A connection that is made just as a restored guest resets those from before is made again.
  static CommandResult in_guest(const std::string& script) {
    return agent({"--wait", std::to_string(kHangLimit.count() / 2), "exec", "--", "sh", "-c", script});
  }

  static void start_load() {
    const CommandResult started = in_guest(kLoad);
    ASSERT_EQ(started.output, "started\n") << started.errors;
  }
  static void expect_all_well() {
    ASSERT_TRUE(wait_for_agent());
    const CommandResult look = in_guest(kLook);
    EXPECT_EQ(look.output, kAllWell) << look.errors;
  }
  static void stop_load() {
    const CommandResult faults = in_guest(
        "touch /tmp/stop; for load in disk clock; do while [ ! -e /tmp/$load-ended ]; do usleep 10000; done; rm "
        "/tmp/$load-ended; done; cat /tmp/faults 2>/dev/null; dmesg");
    EXPECT_EQ(faults.status, 0) << faults.errors;
    EXPECT_EQ(faults.output.find("LOST"), std::string::npos) << faults.output;
    EXPECT_EQ(faults.output.find("BACK"), std::string::npos) << faults.output;
    expect_healthy(faults.output);
  }

  static void move_under_load(unsigned times) {
    ASSERT_NO_FATAL_FAILURE(start_load());
    for (unsigned round = 0; round < times; ++round) {
      const CommandResult moved = guest_->move({"--downtime", "2000"});
      ASSERT_EQ(moved.status, 0) << moved.errors;
      EXPECT_EQ(guest_->last_process().wait(), 0) << guest_->last_process().errors();
      ASSERT_NO_FATAL_FAILURE(expect_all_well());
    }
    stop_load();
  }
  static void save_under_load(unsigned times) {
    ASSERT_NO_FATAL_FAILURE(start_load());
    for (unsigned round = 0; round < times; ++round) {
      const CommandResult saved = guest_->save_and_restore();
      ASSERT_EQ(saved.status, 0) << saved.errors;
      ASSERT_NO_FATAL_FAILURE(expect_all_well());
    }
    stop_load();
  }

  /// Runs programs in the guest, one after the other, while it moves and is saved and restored all the time. Each ends as it
  /// does elsewhere, or fails with one line; none hangs.
  static void exec_while_moving(unsigned count) {
    std::atomic<unsigned> moves = guest_->moves();
    std::atomic<bool> has_ended = false;
    unsigned completed = 0;
    std::jthread client([&] {
      for (unsigned number = 0; number < count; ++number) {
        const std::string text = std::to_string(number);
        const CommandResult result = run_on_host({"tandem", "agent", vsock(moves), "exec", "--", "echo", text});
        completed += result.status == 0;
        if (result.status == 0) {
          EXPECT_EQ(result.output, text + "\n");
        } else {
          EXPECT_EQ(result.status, 125) << result.errors;
          EXPECT_TRUE(result.errors.starts_with("tandem: agent: ")) << result.errors;
          EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
        }
      }
      has_ended = true;
    });
    for (bool by_migration = true; !has_ended && !HasFailure(); by_migration = !by_migration) {
      const CommandResult moved = by_migration ? guest_->move({"--downtime", "2000"}) : guest_->save_and_restore();
      EXPECT_EQ(moved.status, 0) << moved.errors;
      moves = guest_->moves();
      wait_for_agent();
    }
    client.join();
    EXPECT_GT(completed, 0U);
  }

  /// Starts writing to the file system, and does not stop.
  static void write_heavily() {
    ASSERT_EQ(
        in_guest("mkdir -p /mnt; grep -q ' /mnt ' /proc/mounts || mount -t ext4 /dev/vdb /mnt; rm -f /mnt/*;"
                 " (while [ ! -e /tmp/stop-files ]; do dd if=/dev/urandom of=/mnt/$((n++ % 50)) bs=16k count=4; echo "
                 "$n >/tmp/files; done) >/dev/null 2>&1 & usleep 300000")
            .status,
        0);
  }
  /// Whether who mounts the file system of the image has to replay its journal first. (ext4: s_magic, s_feature_incompat)
  static bool needs_recovery() {
    constexpr std::streamoff kSuperblock = 1024;
    std::array<unsigned char, 128> superblock{};
    std::ifstream image(folder_ + "/fs", std::ios::binary);
    image.seekg(kSuperblock);
    image.read(reinterpret_cast<char*>(superblock.data()), superblock.size());
    EXPECT_EQ(superblock[0x38] | superblock[0x39] << 8, 0xef53);
    return (superblock[0x60] & 4U) != 0;
  }
  /// What `tandem status` says of the guest's agent, once it has been asked for everything.
  static json settled() {
    while (true) {
      const CommandResult result = run_on_host({"tandem", "status", guest_->name(), "--json"});
      json status = json::parse(result.output, nullptr, false);
      EXPECT_EQ(result.status, 0) << result.errors;
      if (result.status != 0 || status["settling"]["ended"] == true) {
        return status["settling"]["steps"];
      }
    }
  }

  static std::string folder_;
  static std::unique_ptr<MovingGuest> guest_;
};

std::string LinuxMigrationTest::folder_;
std::unique_ptr<MovingGuest> LinuxMigrationTest::guest_;

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

TEST_F(LinuxMigrationTest, MovesFiveTimesUnderLoad) { move_under_load(5); }

TEST_F(LinuxMigrationTest, IsSavedAndRestoredFiveTimesUnderLoad) { save_under_load(5); }

TEST_F(LinuxMigrationTest, ItsAgentSetsTheClockAndReseedsAfterARestore) {
  ASSERT_EQ(in_guest("date -s '2031-01-01 00:00:00'").status, 0);
  ASSERT_EQ(guest_->save_and_restore().status, 0);
  ASSERT_TRUE(wait_for_agent());
  const json steps = settled();
  EXPECT_EQ(steps["clock"].get<std::string>().find("set back by "), 0U) << steps;
  EXPECT_EQ(steps["random pool"], "reseeded");
  EXPECT_EQ(steps["network"].get<std::string>().find("announced with "), 0U) << steps;
  constexpr long kMinute = 60;
  const long guest = std::strtol(in_guest("date +%s").output.c_str(), nullptr, 10);
  EXPECT_LE(std::labs(std::time(nullptr) - guest), kMinute);
}

TEST_F(LinuxMigrationTest, TwoRestoresOfASnapshotDifferInRandomNumbersAndHaveTheClockThatIsWanted) {
  constexpr long kFirstOf2031 = 1924992000;
  constexpr long kHour = 3600;
  ASSERT_EQ(in_guest("date -u -s '2031-01-01 00:00:00'").status, 0);
  ASSERT_EQ(guest_->save().status, 0);
  EXPECT_EQ(guest_->process().wait(kHangLimit), 0);
  const auto look = [](const std::string& clock) {
    guest_->restore({"--clock", clock});
    wait_for_agent();
    EXPECT_EQ(settled()["random pool"], "reseeded");
    return in_guest("date +%s; head -c 32 /dev/urandom | md5sum").output;
  };
  const std::string wall = look("wall");
  EXPECT_LE(std::labs(std::time(nullptr) - std::strtol(wall.c_str(), nullptr, 10)), kHour);
  EXPECT_EQ(run_on_host({"tandem", "stop", guest_->name(), "--force"}).status, 0);
  EXPECT_EQ(guest_->process().wait(kHangLimit), 1);
  const std::string frozen = look("freeze");
  EXPECT_LE(std::labs(kFirstOf2031 - std::strtol(frozen.c_str(), nullptr, 10)), kHour);
  EXPECT_NE(wall.substr(wall.find('\n')), frozen.substr(frozen.find('\n'))) << wall << frozen;
}

TEST_F(LinuxMigrationTest, ProgramsThatAreRunWhileItMovesEndOrFail) { exec_while_moving(20); }

TEST_F(LinuxMigrationTest, FrozenFileSystemsAreCleanInTheImageAndGoOnAfterARestore) {
  ASSERT_NO_FATAL_FAILURE(write_heavily());
  ASSERT_EQ(guest_->save_and_restore().status, 0);
  EXPECT_TRUE(needs_recovery()) << "it is mounted, and was not frozen";
  ASSERT_TRUE(wait_for_agent());
  const CommandResult saved = guest_->save({"--freeze"});
  ASSERT_EQ(saved.status, 0) << saved.errors;
  EXPECT_EQ(guest_->process().wait(kHangLimit), 0);
  EXPECT_FALSE(needs_recovery());
  guest_->restore();
  ASSERT_TRUE(wait_for_agent());
  const CommandResult writes = in_guest(
      "n=$(cat /tmp/files); while [ $(cat /tmp/files) -le $n ]; do usleep 100000; done; touch /tmp/stop-files; echo "
      "writes");
  EXPECT_EQ(writes.output, "writes\n") << writes.errors;
}

TEST_F(LinuxMigrationTest, ASaveThatFreezesThawsAndLetsTheGuestGoOn) {
  const CommandResult saved = run_on_host({"tandem", "save", guest_->name(), folder_ + "/copy", "--freeze"});
  ASSERT_EQ(saved.status, 0) << saved.errors;
  fs::remove_all(folder_ + "/copy");
  const CommandResult writes = in_guest("echo thawed >/mnt/file && sync /mnt/file && cat /mnt/file");
  EXPECT_EQ(writes.output, "thawed\n") << writes.errors;
  EXPECT_EQ(agent({"thaw"}).status, 1) << "nothing is frozen any more";
}

// The last one: the guest is gone afterwards.
TEST_F(LinuxMigrationTest, BootsAgainWithoutTheFilesThatItWasStartedFrom) {
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

class SoakLinuxMigrationTest : public LinuxMigrationTest {};

TEST_F(SoakLinuxMigrationTest, TwoHundredProgramsThatAreRunWhileItMovesEndOrFail) { exec_while_moving(200); }

TEST_F(SoakLinuxMigrationTest, MovesFiftyTimesUnderLoad) { move_under_load(50); }

TEST_F(SoakLinuxMigrationTest, IsSavedAndRestoredAHundredTimesUnderLoad) { save_under_load(100); }

}  // namespace
}  // namespace tandem::tests
