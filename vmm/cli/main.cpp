// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <span>
#include <variant>

#include "vmm/cli/agent_command.hpp"
#include "vmm/cli/command_line.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/cli/exit_status.hpp"
#include "vmm/cli/receive_command.hpp"
#include "vmm/cli/restore_command.hpp"
#include "vmm/cli/run_command.hpp"
#include "vmm/cli/snapshot_command.hpp"
#include "vmm/cli/vm_command.hpp"

namespace tandem::cli {
namespace {

int perform(const TextRequest& request) {
  if (std::fputs(request.text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    print_error_line(tandem::Error::from_errno("standard output").message());
    return kExitFailure;
  }
  return kExitSuccess;
}

int perform(const RunRequest& request) { return run(request); }

int perform(const ReceiveRequest& request) { return run(request); }

int perform(const RestoreRequest& request) { return run(request); }

int perform(const AgentRequest& request) { return run(request); }

int perform(const VmRequest& request) { return run(request); }

int perform(const SnapshotRequest& request) { return run(request); }

}  // namespace
}  // namespace tandem::cli

int main(int argc, char** argv) {
  using namespace tandem::cli;
  const auto request = parse_command_line({argv, static_cast<size_t>(argc)});
  if (!request) {
    print_error_line(request.error().message());
    return kExitUsage;
  }
  return std::visit([](const auto& what) { return perform(what); }, *request);
}
