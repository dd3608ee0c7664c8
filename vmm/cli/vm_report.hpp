// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vmm/control/job_runner.hpp"

/// How what VMs tell about themselves is shown to people.
namespace tandem::cli {

/// What `status` answered.
std::string status_text(const control::Json& status);

/// A table with a line for each `status`; one that only has a name is of a VM that does not answer.
std::string list_text(const std::vector<control::Json>& statuses);

/// The path of the vsock device's socket in what `status` answered; empty if there is none.
std::string vsock_path_in(const control::Json& status);

/// What `balloon` answered.
std::string balloon_text(const control::Json& balloon);

}  // namespace tandem::cli
