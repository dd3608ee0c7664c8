// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/control/control_commands.hpp"
#include "vmm/machine/machine.hpp"

namespace tandem::cli {

/// The control command `migrate`: a job that moves the machine to a receiver. Spec: docs/control.md.
/// @pre `machine` outlives the command.
control::ControlCommand migrate_command(Machine& machine);

}  // namespace tandem::cli
