// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// What the first process of a system has to do before anything works: mounts the kernel's file systems where they are not, and
/// creates the folders for them.
void mount_kernel_filesystems();

/// Runs the rest of the program in a child, and for ever buries processes that nobody else waits for; a new child takes the
/// place of one that ends. Returns in the child only.
void become_init();

}  // namespace tandem::agent
