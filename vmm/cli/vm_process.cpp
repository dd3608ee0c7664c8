// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_process.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <csignal>

#include "vmm/cli/error_line.hpp"
#include "vmm/cli/exit_status.hpp"

namespace tandem::cli {
namespace {

/// Lets the process have as many descriptors as the hard limit says: the soft one is low for the sake of select(2), and
/// hundreds of vCPUs or disks need more.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

int status_of(MachineEnd::Kind kind) {
  switch (kind) {
    case MachineEnd::Kind::kPoweredOff:
    case MachineEnd::Kind::kHandedOver:
      return kExitSuccess;
    case MachineEnd::Kind::kCrashed:
      return kExitGuestCrashed;
    case MachineEnd::Kind::kStopped:
    case MachineEnd::Kind::kFailed:
      return kExitFailure;
  }
  TANDEM_UNREACHABLE("every kind returns above");
}

}  // namespace

void become_vm_process(log::Level log_level) {
  ::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write(2), not the end of the VM
  ::signal(SIGXFSZ, SIG_IGN);  // nor is a disk or a console file that reached the limit of the user
  ::mallopt(M_ARENA_MAX, 1);   // a heap for each thread would cost more memory than contention costs time
  raise_descriptor_limit();
  log::set_level(log_level);
}

int report_end(const char* command, const Result<MachineEnd>& end) {
  if (!end) {
    print_error_line(fmt::format("{}: {}", command, end.error().message()));
    return kExitFailure;
  }
  if (!end->reason.empty()) {
    print_error_line(fmt::format("{}: {}", command, end->reason));
  }
  return status_of(end->kind);
}

}  // namespace tandem::cli
