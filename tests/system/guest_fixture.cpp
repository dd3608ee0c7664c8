// SPDX-License-Identifier: Apache-2.0
#include "tests/system/guest_fixture.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace tandem::tests {
namespace {

namespace fs = std::filesystem;

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> run_command(const GuestOptions& options, const std::string& folder) {
  std::vector<std::string> command{
      "tandem",    "run",
      "--kernel",  variable("TANDEM_GUEST_KERNEL"),
      "--initrd",  variable("TANDEM_GUEST_INITRAMFS"),
      "--cpus",    std::to_string(options.vcpu_count),
      "--memory",  options.memory,
      "--console", "file=" + folder + "/console.log",
      "--vsock",   folder + "/vsock,cid=42",
      "--cmdline", kKernelParameters + options.parameters + " tandem.exec=\"sleep 2147483647\""};
  command.insert(command.end(), options.options.begin(), options.options.end());
  return command;
}

}  // namespace

const std::string kKernelParameters =
    "console=ttyAMA0 quiet watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=300 workqueue.watchdog_thresh=300 "
    "sysctl.kernel.hung_task_timeout_secs=600 ";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  EXPECT_NE(value, nullptr) << name << " is set by scripts/test";
  return value == nullptr ? "" : value;
}

std::string complaint_in(const std::string& console) {
  for (const char* const word : {"Oops", "BUG:", "Kernel panic", "Call trace:", "soft lockup", "hard LOCKUP",
                                 "rcu: INFO: rcu_", "self-detected stall", "blocked for more than"}) {
    if (console.find(word) != std::string::npos) {
      return word;
    }
  }
  return {};
}

void expect_healthy(const std::string& console) { EXPECT_EQ(complaint_in(console), "") << "in:\n" << console; }

CommandResult run_on_host(const std::vector<std::string>& command, std::string_view input) {
  ChildProcess process(command);
  process.send(input);
  process.close_input();
  const std::optional<int> status = process.wait(kHangLimit);
  return {.status = status, .output = process.output(), .errors = process.errors()};
}

LinuxGuest::LinuxGuest(const GuestOptions& options, std::string folder)
    : folder_(std::move(folder)), vmm_(run_command(options, folder_)) {
  vmm_.close_input();
}

std::vector<std::string> LinuxGuest::agent_command(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{"tandem", "agent", vsock()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

bool LinuxGuest::wait_for_agent() {
  const CommandResult ping = agent({"--wait", std::to_string(kHangLimit.count() / 2), "ping"});
  EXPECT_EQ(ping.status, 0) << ping.errors << "\nconsole:\n" << console();
  return ping.status == 0;
}

CommandResult LinuxGuest::agent(const std::vector<std::string>& arguments, std::string_view input) {
  return run_on_host(agent_command(arguments), input);
}

CommandResult LinuxGuest::run(const std::string& script, std::string_view input) {
  return agent({"exec", "--", "sh", "-c", script}, input);
}

std::string LinuxGuest::new_kernel_messages() {
  const CommandResult messages = run("dmesg -c");
  EXPECT_EQ(messages.status, 0) << messages.errors;
  return messages.output;
}

std::optional<int> LinuxGuest::power_off() {
  agent({"shutdown"});
  return vmm_.wait(kHangLimit);
}

std::string LinuxGuest::console() const { return contents_of(folder_ + "/console.log"); }

std::string SharedGuestTest::folder_;
GuestOptions SharedGuestTest::options_;
std::string SharedGuestTest::suites_;
std::unique_ptr<LinuxGuest> SharedGuestTest::guest_;

/// Ends the guest that the last suite left.
class LastGuestEnd : public testing::Environment {
  void TearDown() override { SharedGuestTest::end(); }
};

namespace {
[[maybe_unused]] const auto* const kLastGuestEnd = testing::AddGlobalTestEnvironment(new LastGuestEnd);
}  // namespace

void SharedGuestTest::boot(const GuestOptions& options) {
  const std::string suite = testing::UnitTest::GetInstance()->current_test_suite()->name();
  if (guest_ && options == options_) {
    suites_ += ", " + suite;
    return;
  }
  end();
  folder_ = fs::temp_directory_path() / "guest-XXXXXX";
  ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  ASSERT_EQ(std::system(options.preparation.c_str()), 0) << options.preparation;
  options_ = options;
  suites_ = suite;
  guest_ = std::make_unique<LinuxGuest>(options, folder_);
  if (!guest_->wait_for_agent()) {
    keep_logs();
    return;
  }
  expect_healthy(guest_->new_kernel_messages());
}

void SharedGuestTest::SetUp() { ASSERT_NE(guest_, nullptr) << "the guest has not booted"; }

void SharedGuestTest::TearDownTestSuite() {
  if (guest_ && testing::UnitTest::GetInstance()->current_test_suite()->Failed()) {
    keep_logs();
    end();
  }
}

void SharedGuestTest::end() {
  if (!guest_) {
    return;
  }
  SCOPED_TRACE("the guest of " + suites_);
  const std::optional<int> status = guest_->power_off();
  EXPECT_EQ(status, 0) << guest_->vmm().errors();
  expect_healthy(guest_->console());
  if (status != 0) {
    keep_logs();
  }
  guest_.reset();
  fs::remove_all(folder_);
  EXPECT_EQ(std::system(options_.removal.c_str()), 0) << options_.removal;
}

void SharedGuestTest::keep_logs() {
  const char* const place = std::getenv("TANDEM_TEST_LOGS");
  const std::string name =
      (place == nullptr ? testing::TempDir() : std::string(place) + '/') + suites_.substr(0, suites_.find(','));
  std::ofstream(name + ".console.log") << guest_->console();
  std::ofstream(name + ".vmm.log") << guest_->vmm().errors();
  std::cerr << "the guest's console and the VMM's log: " << name << ".{console,vmm}.log\n";
}

}  // namespace tandem::tests
