// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "vmm/cli/receive_request.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::cli {

/// What the words behind `receive` ask for, or help to print.
/// @errors  a usage error, without the command's name.
Result<std::variant<std::string, ReceiveRequest>> parse_receive_command(std::vector<std::string> words);

}  // namespace tandem::cli
