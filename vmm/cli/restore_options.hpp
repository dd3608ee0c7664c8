// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "vmm/cli/restore_request.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::cli {

/// What the words behind `restore` ask for, or help to print.
/// @errors  Errc::kInvalidArgument: a usage error, without the command's name.
Result<std::variant<std::string, RestoreRequest>> parse_restore_command(std::vector<std::string> words);

}  // namespace tandem::cli
