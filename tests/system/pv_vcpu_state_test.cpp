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

#include "tests/harness/child_process.hpp"
#include "tests/harness/guest_run.hpp"

namespace tandem::tests {
namespace {

constexpr const char* kReason =
    "bpf: the kernel allows no BPF here (user namespace, seccomp filter or security module)";

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

TEST(PvVcpuStateBackendTest, AutoTakesBpfAndSaysSo) {
  ChildProcess tandem(run_in_mode("auto", Privileges::kAll));
  EXPECT_EQ(tandem.wait(), 0) << tandem.output();
  EXPECT_EQ(tandem.errors(), "tandem: PV vCPU state: bpf\n");
}

TEST(PvVcpuStateBackendTest, OffIsSilent) {
  ChildProcess tandem(run_in_mode("off", Privileges::kAll));
  EXPECT_EQ(tandem.wait(), 0) << tandem.output();
  EXPECT_EQ(tandem.errors(), "");
}

TEST(PvVcpuStateBackendTest, AutoWithoutPrivilegesRunsWithZerosAndSaysWhy) {
  ChildProcess tandem(run_in_mode("auto", Privileges::kNone));
  EXPECT_EQ(tandem.wait(), 0) << tandem.output() << tandem.errors();
  EXPECT_EQ(tandem.errors(), fmt::format("tandem: PV vCPU state: zeros ({})\n", kReason));
}

TEST(PvVcpuStateBackendTest, AutoInAContainerThatHidesBpfRunsWithZerosAndSaysWhy) {
  std::thread([] {
    ASSERT_TRUE(deny_bpf(ENOSYS));
    ChildProcess tandem(run_in_mode("auto", Privileges::kAll));
    EXPECT_EQ(tandem.wait(), 0) << tandem.output() << tandem.errors();
    EXPECT_EQ(tandem.errors(),
              "tandem: PV vCPU state: zeros (bpf: this kernel has no BPF, or a seccomp filter hides it)\n");
  }).join();
}

class InsistingTest : public testing::TestWithParam<const char*> {};

TEST_P(InsistingTest, WithoutPrivilegesFailsWithOneLine) {
  ChildProcess tandem(run_in_mode(GetParam(), Privileges::kNone));
  EXPECT_EQ(tandem.wait(), 1) << tandem.output();
  EXPECT_EQ(tandem.errors(), fmt::format("tandem: run: --pv-vcpu-state {}: {}\n", GetParam(), kReason));
  EXPECT_EQ(tandem.output(), "");
}

INSTANTIATE_TEST_SUITE_P(Modes, InsistingTest, testing::Values("bpf", "require"));

}  // namespace
}  // namespace tandem::tests
