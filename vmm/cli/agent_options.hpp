// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "vmm/cli/agent_request.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::cli {

/// What the words behind `tandem agent` ask for, or help to print.
/// @errors  Errc::kInvalidArgument: a usage error, without "agent: ".
Result<std::variant<std::string, AgentRequest>> parse_agent_command(std::vector<std::string> words);

}  // namespace tandem::cli
