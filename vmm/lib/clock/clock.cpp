// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/clock/clock.hpp"

#include <ctime>

namespace tandem {

int64_t HostClock::realtime_ns() const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace tandem
