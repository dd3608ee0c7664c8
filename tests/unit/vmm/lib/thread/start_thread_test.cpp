// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/thread/start_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tandem {
namespace {

TEST(StartThreadTest, TheBodyRunsUnderTheName) {
  std::array<char, 16> name{};
  auto thread = start_thread("test", [&] { ::pthread_getname_np(::pthread_self(), name.data(), name.size()); });
  ASSERT_TRUE(thread) << thread.error().message();
  thread->join();
  EXPECT_STREQ(name.data(), "test");
}

/// A process that may have no thread beyond its first says what came of starting one by its exit status. Root has no limit.
void run_without_threads() {
  const rlimit none{1, 1};
  if ((::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) || ::setrlimit(RLIMIT_NPROC, &none) != 0) {
    ::_exit(2);
  }
  const auto thread = start_thread("test", [] {});
  ::_exit(!thread && thread.error().message().starts_with("start the thread 'test': ") ? 0 : 1);
}

TEST(StartThreadTest, NoThreadIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) {
    run_without_threads();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tandem
