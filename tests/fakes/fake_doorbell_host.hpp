// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "devices/bus/doorbell_host.hpp"

namespace tandem::devices {

/// Keeps the doorbells it is given: address and value of each.
class FakeDoorbellHost final : public DoorbellHost {
 public:
  Result<void> add_doorbell(GuestAddr addr, uint32_t value, int /*event_fd*/) override {
    doorbells.emplace_back(addr.value(), value);
    return {};
  }

  std::vector<std::pair<uint64_t, uint32_t>> doorbells;
};

}  // namespace tandem::devices
