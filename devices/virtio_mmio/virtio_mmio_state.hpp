// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of one virtqueue, version 1.
struct VirtioQueueStateV1 {
  uint16_t size = 0;
  bool ready = false;
  uint64_t desc_addr = 0;
  uint64_t driver_addr = 0;
  uint64_t device_addr = 0;
  uint16_t next_avail = 0;
  uint16_t next_used = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, size);
    archive(2, ready);
    archive(3, desc_addr);
    archive(4, driver_addr);
    archive(5, device_addr);
    archive(6, next_avail);
    archive(7, next_used);
  }
};

/// Saved form of a virtio-mmio transport and the device behind it, version 1.
struct VirtioMmioStateV1 {
  static constexpr StateKind kKind{"virtio_mmio", 1};

  uint32_t status = 0;
  uint32_t device_features_sel = 0;
  uint32_t driver_features_sel = 0;
  uint64_t driver_features = 0;
  uint32_t queue_sel = 0;
  uint32_t interrupt_status = 0;
  uint32_t config_generation = 0;
  std::vector<VirtioQueueStateV1> queues;
  // The device's own record
  std::string device_kind;
  uint32_t device_version = 0;
  std::vector<std::byte> device_payload;

  template <typename A>
  void fields(A& archive) {
    archive(1, status);
    archive(2, device_features_sel);
    archive(3, driver_features_sel);
    archive(4, driver_features);
    archive(5, queue_sel);
    archive(6, interrupt_status);
    archive(7, config_generation);
    archive(8, queues);
    archive(9, device_kind);
    archive(10, device_version);
    archive(11, device_payload);
  }
};

}  // namespace tandem::devices
