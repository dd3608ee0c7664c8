// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/first_process.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace tandem::agent {
namespace {

struct KernelFilesystem {
  const char* place;
  const char* type;
};

constexpr std::array<KernelFilesystem, 6> kFilesystems{{{"/proc", "proc"},
                                                        {"/sys", "sysfs"},
                                                        {"/dev", "devtmpfs"},
                                                        {"/dev/pts", "devpts"},
                                                        {"/run", "tmpfs"},
                                                        {"/tmp", "tmpfs"}}};

}  // namespace

void mount_kernel_filesystems() {
  for (const KernelFilesystem& filesystem : kFilesystems) {
    ::mkdir(filesystem.place, 0755);
    // One that is mounted already, or that the kernel does not have, is no reason not to go on.
    ::mount(filesystem.type, filesystem.place, filesystem.type, 0, nullptr);
  }
}

void become_init() {
  constexpr unsigned kPauseS = 1;
  while (true) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setsid();
      return;
    }
    for (pid_t ended = -1; ended != child;) {
      ended = ::wait(nullptr);
      if (ended < 0) {
        break;
      }
    }
    ::sleep(kPauseS);
  }
}

}  // namespace tandem::agent
