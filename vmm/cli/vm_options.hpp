// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "vmm/cli/vm_request.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::cli {

/// What the words behind `command` ask for, or help to print.
/// @param command  "list", "status", "pause", "resume", "reset", "stop", "balloon", "save" or "console".
/// @errors  Errc::kInvalidArgument: a usage error, without the command's name.
Result<std::variant<std::string, VmRequest>> parse_vm_command(const std::string& command,
                                                              std::vector<std::string> words);

}  // namespace tandem::cli
