// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a network device, version 1.
struct VirtioNetStateV1 {
  static constexpr StateKind kKind{"virtio_net", 1};

  std::array<uint8_t, 6> mac{};
  uint16_t status = 0;
  uint16_t mtu = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, mac);
    archive(2, status);
    archive(3, mtu);
  }
};

}  // namespace tandem::devices
