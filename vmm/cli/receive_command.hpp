// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/cli/receive_request.hpp"

namespace tandem::cli {

/// Waits for a machine, then runs it until it ends. @return the process's exit status.
int run(const ReceiveRequest& request);

}  // namespace tandem::cli
