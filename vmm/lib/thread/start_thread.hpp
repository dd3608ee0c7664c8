// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "vmm/lib/result/result.hpp"

namespace tandem {

/// Starts a thread that runs `body` and is called `name` where threads are listed. The only way to start one: where none is
/// to be had, std::thread would end the process unless each caller thought of it.
/// @pre `name` has at most 15 characters, see pthread_setname_np(3).
/// @errors  EAGAIN: no thread is to be had; the text names it.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace tandem
