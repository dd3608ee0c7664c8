// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/guest_virtio_mmio.hpp"

#include "devices/virtio_mmio/virtio_mmio_regs.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

using namespace virtio_mmio;

uint32_t GuestVirtioMmio::read(uint64_t offset) const {
  return static_cast<uint32_t>(window_->read({.offset = offset, .width_bytes = 4}).value());
}

void GuestVirtioMmio::write(uint64_t offset, uint32_t value) const {
  TANDEM_ASSERT(window_->write({.offset = offset, .width_bytes = 4}, value), "drivers write to registers that exist");
}

uint64_t GuestVirtioMmio::offered_features() const {
  write(DeviceFeaturesSel, 1);
  const uint64_t high = read(DeviceFeatures);
  write(DeviceFeaturesSel, 0);
  return high << 32 | read(DeviceFeatures);
}

bool GuestVirtioMmio::negotiate(uint64_t features) const {
  write(Status, ACKNOWLEDGE);
  write(Status, ACKNOWLEDGE | DRIVER);
  features |= kVirtioFVersion1;
  for (const uint32_t word : {0U, 1U}) {
    write(DriverFeaturesSel, word);
    write(DriverFeatures, static_cast<uint32_t>(features >> (32 * word)));
  }
  write(Status, ACKNOWLEDGE | DRIVER | FEATURES_OK);
  return (read(Status) & FEATURES_OK) != 0;
}

void GuestVirtioMmio::set_up_queue(uint16_t index, const SplitQueue::State& state) const {
  const auto write_addr = [this](uint64_t low_offset, uint64_t addr) {
    write(low_offset, static_cast<uint32_t>(addr));
    write(low_offset + 4, static_cast<uint32_t>(addr >> 32));
  };
  write(QueueSel, index);
  write(QueueNum, state.size);
  write_addr(QueueDescLow, state.desc_addr);
  write_addr(QueueDriverLow, state.driver_addr);
  write_addr(QueueDeviceLow, state.device_addr);
  write(QueueReady, 1);
}

void GuestVirtioMmio::set_driver_ok() const { write(Status, read(Status) | DRIVER_OK); }

uint32_t GuestVirtioMmio::take_interrupts() const {
  const uint32_t pending = read(InterruptStatus);
  write(InterruptACK, pending);
  return pending;
}

}  // namespace tandem::devices
