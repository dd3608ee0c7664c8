// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/cli/host_names.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/migration/migration_address.hpp"

namespace tandem::cli {

/// What `tandem receive` is asked to do.
struct ReceiveRequest {
  migration::MigrationAddress address{};
  HostNames names{};
  log::Level log_level = log::Level::kInfo;
};

}  // namespace tandem::cli
