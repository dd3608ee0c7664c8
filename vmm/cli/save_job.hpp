// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/control/control_commands.hpp"
#include "vmm/machine/machine.hpp"

namespace tandem::cli {

/// The control command `save`: a job that writes the machine into a snapshot. Spec: docs/control.md.
/// @pre `machine` outlives the command.
control::ControlCommand save_command(Machine& machine);

}  // namespace tandem::cli
