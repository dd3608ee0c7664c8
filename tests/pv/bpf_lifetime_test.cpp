// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "pv/host/bpf_vcpu_state.hpp"
#include "tests/pv/bpf_objects.hpp"
#include "tests/pv/vcpu_threads.hpp"

namespace tandem::tests {
namespace {

using pv::BpfVcpuState;

constexpr uint64_t kCapPerfmon = uint64_t{1} << 38;
constexpr uint64_t kCapBpf = uint64_t{1} << 39;

/// Keeps these capabilities of the calling thread and no other.
void keep_only(uint64_t capabilities) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {};
  words[0].effective = words[0].permitted = static_cast<uint32_t>(capabilities);
  words[1].effective = words[1].permitted = static_cast<uint32_t>(capabilities >> 32);
  if (syscall(SYS_capset, &header, words) != 0) {
    std::abort();
  }
}

/// Runs `body` in a process of its own. @return what it returned.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return "no pipe";
  }
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : text + " and status " + std::to_string(status);
}

/// Creates a back end and uses it. @return "works" or the error.
std::string outcome_of_use() {
  auto backend = BpfVcpuState::create();
  if (!backend) {
    return backend.error().message();
  }
  return agree(count_switches_under_contention(**backend, 2'000)) ? "works" : "counts wrongly";
}

TEST(BpfLifetimeTest, HundredBackEndsLeaveNoObjectAndNoDescriptor) {
  const BpfObjects before = settled_bpf_objects();
  ASSERT_GE(before.programs, 0);
  const int descriptors_before = count_descriptors();
  for (int i = 0; i < 100; ++i) {
    auto backend = BpfVcpuState::create();
    ASSERT_TRUE(backend) << backend.error().message();
    std::thread([&backend] {
      const AttachedVcpu attached(**backend, 0);
      (*backend)->activate(0);
    }).join();
    if (i == 0) {
      const BpfObjects during = settled_bpf_objects();
      EXPECT_EQ(during.links, before.links + 1);
      EXPECT_EQ(during.maps, before.maps + 4);
    }
  }
  EXPECT_EQ(count_descriptors(), descriptors_before);
  EXPECT_EQ(await_bpf_objects(before), before);
}

TEST(BpfLifetimeTest, KilledProcessLeavesNoObject) {
  const BpfObjects before = settled_bpf_objects();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto backend = BpfVcpuState::create();
    if (!backend || !(*backend)->attach_thread(0) || write(ends[1], "!", 1) != 1) {
      _exit(1);
    }
    (*backend)->activate(0);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(count_bpf_objects().links, before.links + 1);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(await_bpf_objects(before), before);
}

TEST(BpfLifetimeTest, DescriptorsAreCloseOnExec) {
  const int before = count_descriptors_without_cloexec();
  auto backend = BpfVcpuState::create();
  ASSERT_TRUE(backend) << backend.error().message();
  EXPECT_EQ(count_descriptors_without_cloexec(), before);
}

TEST(BpfLifetimeTest, WorksInAPidNamespaceOfItsOwn) {
  const std::string outcome = in_child([] {
    return unshare(CLONE_NEWPID) == 0 ? in_child([] { return getpid() == 1 ? outcome_of_use() : "no namespace"; })
                                      : std::string("cannot unshare");
  });
  EXPECT_EQ(outcome, "works");
}

TEST(BpfLifetimeTest, WorksWithoutStandardStreams) {
  const std::string outcome = in_child([] {
    close(0);
    close(1);
    close(2);
    return outcome_of_use();
  });
  EXPECT_EQ(outcome, "works");
}

TEST(BpfLifetimeTest, NeedsTwoCapabilitiesOnly) {
  EXPECT_EQ(in_child([] {
              keep_only(kCapBpf | kCapPerfmon);
              return outcome_of_use();
            }),
            "works");
}

TEST(BpfLifetimeTest, NeedsNoCapabilityOnceCreated) {
  EXPECT_EQ(in_child([]() -> std::string {
              auto backend = BpfVcpuState::create();
              if (!backend) {
                return backend.error().message();
              }
              keep_only(0);
              return agree(count_switches_under_contention(**backend, 2'000)) ? "works" : "counts wrongly";
            }),
            "works");
}

TEST(BpfLifetimeTest, MissingCapabilityIsNamed) {
  for (const uint64_t held : {uint64_t{0}, kCapBpf, kCapPerfmon}) {
    EXPECT_EQ(in_child([held] {
                keep_only(held);
                return outcome_of_use();
              }),
              "needs CAP_BPF and CAP_PERFMON");
  }
}

}  // namespace
}  // namespace tandem::tests
