// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <variant>

#include "vmm/cli/agent_request.hpp"
#include "vmm/cli/receive_request.hpp"
#include "vmm/cli/restore_request.hpp"
#include "vmm/cli/run_request.hpp"
#include "vmm/cli/snapshot_request.hpp"
#include "vmm/cli/vm_request.hpp"
#include "vmm/lib/result/result.hpp"

/// The command line of `tandem`.
namespace tandem::cli {

/// Something to print on stdout: help, or the version.
struct TextRequest {
  std::string text;
};

/// What a command line asks for.
using Request =
    std::variant<TextRequest, RunRequest, ReceiveRequest, RestoreRequest, AgentRequest, VmRequest, SnapshotRequest>;

/// What `arguments`, the program's name first, ask for. A file named by `--config` is read once everything on the
/// command line itself is found good; an option on the command line replaces that of the file.
/// @errors  any: a usage error, as one line without "tandem: ".
Result<Request> parse_command_line(std::span<const char* const> arguments);

}  // namespace tandem::cli
