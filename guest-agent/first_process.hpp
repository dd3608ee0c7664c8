// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tandem::agent {

/// What the first process of a system has to do before anything works: mounts the kernel's file systems where nothing is
/// mounted yet, and creates the folders for them.
void mount_kernel_filesystems();

/// Whether something is mounted on the folder `place`.
bool is_mount_point(const std::string& place);

/// Opens /dev/null in place of each standard stream that is closed. A socket would get its number otherwise, and what is
/// meant for the stream.
void open_missing_streams();

/// Runs the rest of the program in a child, and for ever buries processes that nobody else waits for; a new child takes the
/// place of one that ends. Returns in the child only.
void become_init();

}  // namespace tandem::agent
