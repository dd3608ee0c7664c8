// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/cli/run_request.hpp"

namespace tandem::cli {

/// Runs the machine until its guest ends. Says on stderr why if that fails.
/// @return  an ExitStatus.
int run(const RunRequest& request);

}  // namespace tandem::cli
