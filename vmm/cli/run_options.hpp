// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/cli/run_request.hpp"
#include "vmm/lib/result/result.hpp"

/// The options of `tandem run` as a table, from which the command line, the configuration file, the help and the tests
/// take them; and the way from their texts to a RunRequest.
namespace tandem::cli {

/// One option.
struct RunOption {
  enum class Kind : uint8_t {
    kText,    ///< One value.
    kNumber,  ///< One value, which may be a number in a configuration file.
    kList,    ///< Any number of values.
    kFlag,    ///< No value.
  };
  const char* name;  ///< Without the dashes.
  Kind kind;
  const char* value_name;  ///< As the help shows it; empty for flags.
  const char* group;       ///< Heading in the help.
  const char* help;
  /// Takes one text; flags ignore it.
  Result<void> (*apply)(RunRequest& request, std::string_view text);
};

/// All of them but `config`, `help` and `version`, which say nothing about a machine.
std::span<const RunOption> run_options();

/// The place of the option called `name` in `run_options()`, or its size.
size_t find_run_option(std::string_view name);

/// The texts that one source gives for each option.
struct GivenOption {
  std::string label;               ///< How errors call it: "--cpus", say.
  std::vector<std::string> texts;  ///< In order; for a flag that is set, one text of any content.
};
using GivenOptions = std::vector<GivenOption>;  ///< One for each of `run_options()`, in its order.

/// Checks each text by itself.
/// @errors  Errc::kInvalidArgument, or Errc::kOutOfRange: the first bad one.
Result<RunRequest> apply_options(const GivenOptions& given);

/// The request that `given` makes; everything about it is checked that can be without looking at the host.
/// @errors  as `apply_options`, and Errc::kInvalidArgument: options that do not go together.
Result<RunRequest> make_run_request(const GivenOptions& given);

}  // namespace tandem::cli
