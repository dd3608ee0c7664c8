// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/guest_requests.hpp"

#include <utility>

namespace tandem {

void GuestRequests::add(GuestRequest request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
}

std::vector<GuestRequest> GuestRequests::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(requests_, {});
}

}  // namespace tandem
