// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "vmm/cli/run_options.hpp"
#include "vmm/lib/result/result.hpp"

/// The configuration file: a JSON object whose keys are the long options of `tandem run` without the dashes. Flags are
/// true or false, options that may be repeated are arrays of strings, numbers are numbers or strings, all else strings.
namespace tandem::cli {

/// Largest configuration file: some thousand times what a machine needs.
inline constexpr uint64_t kMaxConfigBytes = 1U << 20;

/// What the JSON text gives.
/// @param label  how errors call the file.
/// @errors  Errc::kInvalidArgument: no JSON, no object, an unknown or repeated key, or a value of the wrong type.
Result<GivenOptions> parse_config(std::string_view json, std::string_view label);

/// What the file at `path` gives.
/// @errors  as `parse_config` and `RegularFile::open`; Errc::kOutOfRange: larger than `kMaxConfigBytes`.
Result<GivenOptions> read_config_file(const std::string& path);

}  // namespace tandem::cli
