// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vmm/cli/host_names.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::cli {

/// What `tandem restore` is asked to do.
struct RestoreRequest {
  std::string directory{};                 ///< The snapshot.
  std::vector<std::string> base_places{};  ///< Where else the snapshots may be that it builds on.
  HostNames names{};
  bool paused = false;        ///< Wait for `tandem resume` before the first instruction.
  bool eager = false;         ///< Read and check all RAM first.
  bool freeze_clock = false;  ///< The wall clock goes on from the saved time.
  log::Level log_level = log::Level::kInfo;
  bool operator==(const RestoreRequest&) const = default;
};

}  // namespace tandem::cli
