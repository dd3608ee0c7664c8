// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/cli/agent_request.hpp"

namespace tandem::cli {

/// Does what is asked for, with this process's standard streams. @return the exit status.
int run(const AgentRequest& request);

}  // namespace tandem::cli
