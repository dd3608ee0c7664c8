// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/thread/start_thread.hpp"

#include <pthread.h>

#include <system_error>
#include <utility>

namespace tandem {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  try {
    std::thread thread(std::move(body));
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    return std::unexpected(Error::from_errno(fmt::format("start the thread '{}'", name), error.code().value()));
  }
}

}  // namespace tandem
