// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <algorithm>

namespace tandem::agent {

/// What the limit of descriptors has to be for all clients to fit, if it is `now`: never less. The programs that the agent
/// starts have it, too, and may raise theirs as far as they could without the agent.
constexpr rlimit roomy_descriptor_limit(const rlimit& now) {
  constexpr rlim_t kDescriptors = 16384;
  return {.rlim_cur = std::max(now.rlim_cur, kDescriptors), .rlim_max = std::max(now.rlim_max, kDescriptors)};
}

}  // namespace tandem::agent
