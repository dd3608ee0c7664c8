// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a socket device, version 1. Streams do not travel: their other ends stay on the host that was left.
struct VirtioVsockStateV1 {
  static constexpr StateKind kKind{"virtio_vsock", 1};

  uint64_t guest_cid = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, guest_cid);
  }
};

}  // namespace tandem::devices
