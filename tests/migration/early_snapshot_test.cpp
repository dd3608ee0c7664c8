// SPDX-License-Identifier: Apache-2.0
// Linux is saved while it boots, and goes on booting where it is restored.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/harness/capabilities.hpp"
#include "tests/system/guest_fixture.hpp"

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class EarlySnapshotTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~EarlySnapshotTest() override { fs::remove_all(folder_); }

  /// Saves a guest that long after its start, and restores it.
  void expect_boots_after_save_at(milliseconds age) {
    SCOPED_TRACE(std::to_string(age.count()) + " ms after the start");
    const std::string snapshot = folder_ + "/snapshot";
    fs::remove_all(snapshot);
    ChildProcess vm({"tandem", "run", "--name", "early", "--kernel", variable("TANDEM_GUEST_KERNEL"), "--initrd",
                     variable("TANDEM_GUEST_INITRAMFS"), "--cpus", "2", "--memory",
                     std::to_string(guest_kernel().least_memory_mib) + "M", "--cmdline",
                     kKernelParameters + "tandem.exec=\"echo; echo BOOTED\""});
    vm.close_input();
    std::this_thread::sleep_for(age);
    CommandResult saved;
    do {  // until it has its name
      saved = run_on_host({"tandem", "save", "early", snapshot, "--stop"});
    } while (saved.status != 0 && !vm.wait(ChildProcess::Seconds(0)));
    ASSERT_EQ(saved.status, 0) << saved.errors << vm.errors();
    EXPECT_EQ(vm.wait(kHangLimit), 0) << vm.errors();
    EXPECT_EQ(vm.output().find("BOOTED"), std::string::npos) << "that was not early";
    ChildProcess restored({"tandem", "restore", snapshot});
    restored.close_input();
    EXPECT_EQ(restored.wait(kHangLimit), 0) << restored.errors() << restored.output();
    EXPECT_NE(restored.output().find("\nBOOTED"), std::string::npos) << restored.output();
    expect_healthy(restored.output());
  }

 private:
  std::string folder_ = fs::temp_directory_path() / "early-XXXXXX";
};

TEST_F(EarlySnapshotTest, AGuestThatHasJustStartedBootsOn) { expect_boots_after_save_at(milliseconds(10)); }

TEST_F(EarlySnapshotTest, AGuestThatBootsBootsOn) { expect_boots_after_save_at(milliseconds(500)); }

class SoakEarlySnapshotTest : public EarlySnapshotTest {};

TEST_F(SoakEarlySnapshotTest, AGuestIsSavedAtFiftyMomentsOfItsBoot) {
  for (milliseconds age(10); age <= milliseconds(500); age += milliseconds(10)) {
    expect_boots_after_save_at(age);
  }
}

}  // namespace
}  // namespace tandem::tests
