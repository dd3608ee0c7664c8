// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/lib/log/log.hpp"
#include "vmm/machine/machine.hpp"

/// What all commands have in common whose process becomes a virtual machine.
namespace tandem::cli {

/// Makes the process fit to hold a machine. Called before anything else.
void become_vm_process(log::Level log_level);

/// Says on stderr how the machine came to its end, or why there was none. @return the process's exit status.
int report_end(const char* command, const Result<MachineEnd>& end);

}  // namespace tandem::cli
