// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/deadline/deadline.hpp"

#include <algorithm>
#include <limits>

namespace tandem {

int Deadline::poll_timeout_ms() const {
  if (!at_) {
    return -1;
  }
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(*at_ - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace tandem
