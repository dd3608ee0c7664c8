// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::tests {

/// The vCPU threads of a running `tandem` by vCPU index, found by their names. Empty when there is none.
std::vector<pid_t> vcpu_threads(pid_t process);

/// Lets `thread` run on one CPU of the host only. @return false if it cannot be.
bool pin(pid_t thread, unsigned cpu);

/// How often the host switched `thread` out though it could have gone on, as the host counts it.
/// @return nothing if there is no such thread.
std::optional<uint64_t> involuntary_switches(pid_t process, pid_t thread);

/// The process that `parent` started, if there is exactly one.
std::optional<pid_t> only_child(pid_t parent);

}  // namespace tandem::tests
