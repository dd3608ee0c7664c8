// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/first_process.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

namespace tandem::agent {
namespace {

TEST(FirstProcessTest, AMountPointIsToldFromAFolder) {
  EXPECT_TRUE(is_mount_point("/proc"));
  EXPECT_FALSE(is_mount_point("/proc/self"));
  EXPECT_FALSE(is_mount_point("/no/such/folder"));
}

/// In a child whose streams `closed` are closed: 0 if open_missing_streams() makes all three be there, and /dev/null of
/// those that were not.
int streams_after(std::initializer_list<int> closed) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : closed) {
      ::close(stream);
    }
    open_missing_streams();
    struct stat null{};
    bool is_good = ::stat("/dev/null", &null) == 0;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      struct stat status{};
      is_good = is_good && ::fstat(stream, &status) == 0;
    }
    for (const int stream : closed) {
      struct stat status{};
      is_good = is_good && ::fstat(stream, &status) == 0 && status.st_rdev == null.st_rdev;
    }
    ::_exit(is_good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(FirstProcessTest, StreamsThatAreClosedAreOpened) {
  EXPECT_EQ(streams_after({}), 0);
  EXPECT_EQ(streams_after({STDOUT_FILENO}), 0);
  EXPECT_EQ(streams_after({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}), 0);
}

}  // namespace
}  // namespace tandem::agent
