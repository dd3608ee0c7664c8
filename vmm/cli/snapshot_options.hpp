// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "vmm/cli/snapshot_request.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::cli {

/// What the words behind `tandem verify` or `tandem info` ask for, or help to print.
/// @param name  "verify" or "info".
/// @errors  Errc::kInvalidArgument: a usage error, without the command's name.
Result<std::variant<std::string, SnapshotRequest>> parse_snapshot_command(const std::string& name,
                                                                          std::vector<std::string> words);

}  // namespace tandem::cli
