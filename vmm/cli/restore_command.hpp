// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/cli/restore_request.hpp"

namespace tandem::cli {

/// Lets a saved machine go on until it ends. @return the process's exit status.
int run(const RestoreRequest& request);

}  // namespace tandem::cli
