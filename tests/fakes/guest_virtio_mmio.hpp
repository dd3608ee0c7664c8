// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "devices/bus/mmio_handler.hpp"
#include "devices/virtio_queue/split_queue.hpp"

namespace tandem::devices {

/// A driver's way to the registers of a virtio-mmio window.
class GuestVirtioMmio {
 public:
  explicit GuestVirtioMmio(MmioHandler& window) : window_(&window) {}

  [[nodiscard]] uint32_t read(uint64_t offset) const;
  void write(uint64_t offset, uint32_t value) const;

  [[nodiscard]] uint64_t offered_features() const;
  /// ACKNOWLEDGE, DRIVER, and FEATURES_OK with `features` and VERSION_1. @return whether FEATURES_OK stayed.
  bool negotiate(uint64_t features) const;
  void set_up_queue(uint16_t index, const SplitQueue::State& state) const;
  void set_driver_ok() const;
  /// Reads and acknowledges InterruptStatus.
  [[nodiscard]] uint32_t take_interrupts() const;

 private:
  MmioHandler* window_;
};

}  // namespace tandem::devices
