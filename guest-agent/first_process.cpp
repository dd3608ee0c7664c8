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
  const char* options;
};

constexpr std::array<KernelFilesystem, 6> kFilesystems{{{"/proc", "proc", nullptr},
                                                        {"/sys", "sysfs", nullptr},
                                                        {"/dev", "devtmpfs", nullptr},
                                                        {"/dev/pts", "devpts", "mode=620,ptmxmode=666"},
                                                        {"/run", "tmpfs", "mode=755"},
                                                        {"/tmp", "tmpfs", "mode=1777"}}};

}  // namespace

void mount_kernel_filesystems() {
  for (const KernelFilesystem& filesystem : kFilesystems) {
    ::mkdir(filesystem.place, 0755);
    // A second one would hide what a program before us has put there.
    if (!is_mount_point(filesystem.place)) {
      // One that the kernel does not have is no reason not to go on.
      ::mount(filesystem.type, filesystem.place, filesystem.type, 0, filesystem.options);
    }
  }
}

bool is_mount_point(const std::string& place) {
  struct stat self{};
  struct stat parent{};
  return ::stat(place.c_str(), &self) == 0 && ::stat((place + "/..").c_str(), &parent) == 0 &&
         self.st_dev != parent.st_dev;
}

void open_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) {
      // It gets the lowest number that is free, which is this one: those below are open. It stays open for good.
      static_cast<void>(::open("/dev/null", O_RDWR));
    }
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
