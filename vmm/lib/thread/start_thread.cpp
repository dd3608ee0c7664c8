// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/thread/start_thread.hpp"

#include <pthread.h>

#include <string>
#include <system_error>
#include <utility>

namespace tandem {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  try {
    // By itself: another thread's name is set by way of /proc, which may be that of another PID namespace.
    return std::thread([name = std::string(name), body = std::move(body)] {
      ::pthread_setname_np(::pthread_self(), name.c_str());
      body();
    });
  } catch (const std::system_error& error) {
    return std::unexpected(Error::from_errno(fmt::format("start the thread '{}'", name), error.code().value()));
  }
}

}  // namespace tandem
