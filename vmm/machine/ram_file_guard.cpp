// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/ram_file_guard.hpp"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "devices/backend/raw_terminal.hpp"

namespace tandem {
namespace {

/// What the handler needs. A handler can be handed nothing, so this is the process's; it is fixed while the handler is
/// installed.
struct Guarded {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  std::string line;
};
Guarded& guarded() {
  static Guarded the_one;
  return the_one;
}

constexpr int kStatusFailure = 1;

/// Only calls what is safe in a handler.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const auto* const place = static_cast<const std::byte*>(info->si_addr);
  const Guarded& memory = guarded();
  if (place < memory.begin || place >= memory.end) {
    ::signal(signal, SIG_DFL);  // none of ours: the access is made again, and ends the process as ever
    return;
  }
  devices::give_terminal_back();
  if (::write(STDERR_FILENO, memory.line.data(), memory.line.size()) < 0) {
    // Nobody is there to be told.
  }
  ::_exit(kStatusFailure);
}

}  // namespace

Result<std::unique_ptr<RamFileGuard>> RamFileGuard::create(std::span<const std::byte> ram, std::string line) {
  guarded() = {.begin = ram.data(), .end = ram.data() + ram.size(), .line = std::move(line) + '\n'};
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGBUS, &action, nullptr) != 0) {
    return fail_errno("sigaction(SIGBUS)");
  }
  return std::unique_ptr<RamFileGuard>(new RamFileGuard);
}

RamFileGuard::~RamFileGuard() { ::signal(SIGBUS, SIG_DFL); }

}  // namespace tandem
