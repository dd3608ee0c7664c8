// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/harness/child_process.hpp"

namespace tandem::tests {

/// A guest that takes longer to boot, or a command that takes longer to end, hangs.
inline constexpr ChildProcess::Seconds kHangLimit{1200};

/// One boot of Linux with the guest agent in it.
struct GuestOptions {
  unsigned vcpu_count = 1;
  std::string memory = "256M";
  std::string parameters = {};            ///< More words of the kernel command line.
  std::vector<std::string> options = {};  ///< More options of `tandem run`.
  std::string preparation = "true";       ///< What a shell of the host does before the guest starts.
  std::string removal = "true";           ///< What it does when the guest has ended.

  bool operator==(const GuestOptions&) const = default;
};

/// How a command ended.
struct CommandResult {
  std::optional<int> status{};  ///< Nothing: it hung.
  std::string output{};
  std::string errors{};
};

/// Begins every kernel command line. The kernel looks for CPUs, work and tasks that are stuck, but complains only after minutes:
/// a busy machine makes a guest wait for long, too. That is still well before `kHangLimit`. It prints what is wrong only: in an emulated host a
/// guest's every character takes most of a millisecond, which for all messages is longer than the rest of a boot.
extern const std::string kKernelParameters;

/// A variable that scripts/test sets.
std::string variable(const char* name);

/// What of a console no healthy guest prints: oops, lockup, RCU stall, hung task, panic. Nothing, if all is well.
std::string complaint_in(const std::string& console);
/// Expects no complaint.
void expect_healthy(const std::string& console);

/// Runs a command of the host to its end.
CommandResult run_on_host(const std::vector<std::string>& command, std::string_view input = {});

/// A Linux guest, started by `tandem run` and spoken to by `tandem agent`.
class LinuxGuest {
 public:
  /// @param folder  where its socket and its console go; exists.
  LinuxGuest(const GuestOptions& options, std::string folder);

  /// The Unix socket of its vsock device.
  [[nodiscard]] std::string vsock() const { return folder_ + "/vsock"; }
  /// What `tandem agent` is called with before `arguments`.
  [[nodiscard]] std::vector<std::string> agent_command(const std::vector<std::string>& arguments) const;

  /// Waits until the agent answers. @return false: it does not.
  bool wait_for_agent();
  /// `tandem agent VM ARGUMENTS…`
  CommandResult agent(const std::vector<std::string>& arguments, std::string_view input = {});
  /// Runs a shell script in the guest.
  CommandResult run(const std::string& script, std::string_view input = {});
  /// What its kernel has logged since the call before, also what its console does not show.
  std::string new_kernel_messages();

  /// Makes the guest power off, and waits for the end of the VM. @return its exit status.
  std::optional<int> power_off();

  /// All that came from the console so far.
  [[nodiscard]] std::string console() const;
  ChildProcess& vmm() { return vmm_; }

 private:
  std::string folder_;
  ChildProcess vmm_;
};

/// Tests that share one guest: one boots before the first test of a suite, unless the suite before has left one with the same
/// options and no failure. It has to boot without complaints and, after its last suite, be healthy and power off well.
/// If a test failed, its console and the VMM's log are kept, and their place is printed.
class SharedGuestTest : public testing::Test {
 protected:
  static void boot(const GuestOptions& options);
  static void TearDownTestSuite();
  void SetUp() override;

  static LinuxGuest& guest() { return *guest_; }
  static const std::string& folder() { return folder_; }

 private:
  friend class LastGuestEnd;
  static void end();
  static void keep_logs();
  static std::string folder_;
  static GuestOptions options_;
  static std::string suites_;
  static std::unique_ptr<LinuxGuest> guest_;
};

}  // namespace tandem::tests
