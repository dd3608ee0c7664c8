// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/unique_fd/unique_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace tandem {

void UniqueFd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old >= 0) {
    ::close(old);
  }
}

Result<UniqueFd> create_eventfd() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    return fail_errno("eventfd");
  }
  return UniqueFd(fd);
}

void signal_eventfd(int fd) {
  const uint64_t one = 1;
  // Fails only when the counter is at its maximum: then it is signalled already.
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

bool drain_eventfd(int fd) {
  uint64_t count = 0;
  return ::read(fd, &count, sizeof count) == sizeof count;
}

}  // namespace tandem
