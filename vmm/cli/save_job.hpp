// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/control/control_commands.hpp"
#include "vmm/machine/machine.hpp"
#include "vmm/migration/difference_base.hpp"

namespace tandem::cli {

/// The control command `save`: a job that writes the machine into a snapshot. Spec: docs/control.md.
/// @param base  that of the machine's RAM: what differences are taken to.
/// @pre `machine` and `base` outlive the command.
control::ControlCommand save_command(Machine& machine, migration::DifferenceBase& base);

}  // namespace tandem::cli
