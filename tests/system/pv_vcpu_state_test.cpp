// SPDX-License-Identifier: Apache-2.0
// What `tandem run` says about the back end of PV vCPU state, and what it does when the host lets it have none.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/capabilities.hpp"
#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"

namespace tandem::tests {
namespace {

constexpr const char* kNoRecords = "kernel: this host's KVM keeps no records";
constexpr const char* kNoBpf = "bpf: the kernel allows no BPF here (user namespace, seccomp filter or security module)";

/// What is said at start where the reason `no_bpf` leaves the kernel as the only back end, if it is one.
std::string summary_without_bpf(const std::string& no_bpf) {
  return capabilities().kvm_records ? "tandem: PV vCPU state: kernel\n"
                                    : fmt::format("tandem: PV vCPU state: zeros ({}; {})\n", kNoRecords, no_bpf);
}

enum class Privileges { kAll, kNone };

/// A short run in `mode`. A process in a user namespace of its own has no privileges over the host's kernel, but may use KVM.
std::vector<std::string> run_in_mode(const std::string& mode, Privileges privileges) {
  std::vector<std::string> command = run_command({.payload = "hello", .options = {"--pv-vcpu-state", mode}});
  if (privileges == Privileges::kNone) {
    command.insert(command.begin(), {"unshare", "-U", "-r"});
  }
  return command;
}

/// Has bpf(2) fail with `error` for this thread and all that it starts, as a container's filter does.
bool deny_bpf(unsigned error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(PvVcpuStateBackendTest, AutoTakesTheBestAndSaysSo) {
  ASSERT_FALSE(capabilities().vcpu_state_back_ends().empty()) << capabilities().where;
  ChildProcess tandem(run_in_mode("auto", Privileges::kAll));
  EXPECT_EQ(tandem.wait(), 0) << tandem.output();
  EXPECT_EQ(tandem.errors(), fmt::format("tandem: PV vCPU state: {}\n", capabilities().vcpu_state_back_ends().front()));
}

TEST(PvVcpuStateBackendTest, EachThatIsThereCanBeNamedAndIsSaid) {
  for (const std::string& name : capabilities().vcpu_state_back_ends()) {
    ChildProcess tandem(run_in_mode(name, Privileges::kAll));
    EXPECT_EQ(tandem.wait(), 0) << tandem.output();
    EXPECT_EQ(tandem.errors(), fmt::format("tandem: PV vCPU state: {}\n", name));
  }
}

TEST(PvVcpuStateBackendTest, KernelNeedsNoPrivilegesAndFailsWithOneLineWhereItIsMissing) {
  ChildProcess tandem(run_in_mode("kernel", Privileges::kNone));
  EXPECT_EQ(tandem.wait(), capabilities().kvm_records ? 0 : 1) << tandem.output();
  EXPECT_EQ(tandem.errors(), capabilities().kvm_records
                                 ? std::string("tandem: PV vCPU state: kernel\n")
                                 : fmt::format("tandem: run: --pv-vcpu-state kernel: {}\n", kNoRecords));
}

TEST(PvVcpuStateBackendTest, OffIsSilent) {
  ChildProcess tandem(run_in_mode("off", Privileges::kAll));
  EXPECT_EQ(tandem.wait(), 0) << tandem.output();
  EXPECT_EQ(tandem.errors(), "");
}

TEST(PvVcpuStateBackendTest, AutoWithoutPrivilegesRunsWithWhatIsLeftAndSaysWhy) {
  ChildProcess tandem(run_in_mode("auto", Privileges::kNone));
  EXPECT_EQ(tandem.wait(), 0) << tandem.output() << tandem.errors();
  EXPECT_EQ(tandem.errors(), summary_without_bpf(kNoBpf));
}

TEST(PvVcpuStateBackendTest, AutoInAContainerThatHidesBpfRunsWithWhatIsLeftAndSaysWhy) {
  std::thread([] {
    ASSERT_TRUE(deny_bpf(ENOSYS));
    ChildProcess tandem(run_in_mode("auto", Privileges::kAll));
    EXPECT_EQ(tandem.wait(), 0) << tandem.output() << tandem.errors();
    EXPECT_EQ(tandem.errors(), summary_without_bpf("bpf: this kernel has no BPF, or a seccomp filter hides it"));
  }).join();
}

TEST(PvVcpuStateBackendTest, BpfWithoutPrivilegesFailsWithOneLine) {
  ChildProcess tandem(run_in_mode("bpf", Privileges::kNone));
  EXPECT_EQ(tandem.wait(), 1) << tandem.output();
  EXPECT_EQ(tandem.errors(), fmt::format("tandem: run: --pv-vcpu-state bpf: {}\n", kNoBpf));
  EXPECT_EQ(tandem.output(), "");
}

TEST(PvVcpuStateBackendTest, RequireWithoutPrivilegesTakesTheKernelsOrFailsWithOneLine) {
  ChildProcess tandem(run_in_mode("require", Privileges::kNone));
  EXPECT_EQ(tandem.wait(), capabilities().kvm_records ? 0 : 1) << tandem.output();
  EXPECT_EQ(tandem.errors(), capabilities().kvm_records
                                 ? std::string("tandem: PV vCPU state: kernel\n")
                                 : fmt::format("tandem: run: --pv-vcpu-state require: {}; {}\n", kNoRecords, kNoBpf));
}

}  // namespace
}  // namespace tandem::tests
