// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/host_entropy.hpp"

#include <sys/random.h>

namespace tandem::devices {

Result<void> HostEntropy::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got >= 0) {
      out = out.subspan(static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return fail_errno("getrandom");
    }
  }
  return {};
}

}  // namespace tandem::devices
