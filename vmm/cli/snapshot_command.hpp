// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/cli/snapshot_request.hpp"

namespace tandem::cli {

/// Does what is asked for, with this process's standard streams. @return the exit status.
int run(const SnapshotRequest& request);

}  // namespace tandem::cli
