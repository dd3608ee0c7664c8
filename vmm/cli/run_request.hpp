// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "vmm/lib/log/log.hpp"
#include "vmm/machine/machine_spec.hpp"

namespace tandem::cli {

/// What `tandem run` is asked to do.
struct RunRequest {
  MachineSpec spec;
  std::string dump_dtb_path{};  ///< Where the device tree goes as well; empty: nowhere.
  bool dry_run = false;         ///< Set everything up, then end without running the guest.
  bool paused = false;          ///< Do not run the guest before the user resumes it.
  log::Level log_level = log::Level::kInfo;
  bool operator==(const RunRequest&) const = default;
};

}  // namespace tandem::cli
