// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "devices/virtio_queue/split_queue.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

/// What a virtio device may ask of its transport (virtio-mmio today). Called with the device's mutex held.
class VirtioTransport {
 public:
  virtual ~VirtioTransport() = default;
  /// Used buffers were added to `queue`, and the driver wants to know (see SplitQueue::should_notify).
  virtual void notify_used(uint16_t queue) = 0;
  /// The configuration space has changed.
  virtual void notify_config() = 0;
  /// The driver broke the protocol: DEVICE_NEEDS_RESET. The device does no more until it is reset.
  /// @param why  for the log: "descriptor chain with a loop".
  virtual void set_needs_reset(std::string_view why) = 0;
};

/// What the driver has agreed on when it sets DRIVER_OK; valid until the device's next `reset`.
struct VirtioActivation {
  uint64_t features;  ///< Negotiated feature bits.
  const GuestMemory& memory;
  std::span<SplitQueue> queues;  ///< By queue index; some may not be enabled (`SplitQueue::is_ready`).
  VirtioTransport& transport;
};

/// A virtio device: knows its queues, its configuration space and an interrupt, but not the transport.
///
/// Component::reset is also what the driver's write of 0 to the status register does: it waits for I/O in flight, after
/// which the device touches neither queues nor guest RAM until it is activated again. Component::restore comes after
/// `reset`, and before `activate` if the device was active when it was saved; the queues are set up by then.
/// @thread  as DeviceExecutor: one at a time, under the device's mutex.
/// @spec    virtio 1.2, "Basic Facilities of a Virtio Device"
class VirtioDevice : public Component {
 public:
  /// @spec virtio 1.2, "Device Types"
  [[nodiscard]] virtual uint32_t device_id() const = 0;
  /// Device-type feature bits offered (0–23, 50 and up); the transport adds those of rings and transport (24–41).
  [[nodiscard]] virtual uint64_t device_features() const = 0;
  /// Largest size of each queue; the span's length is the number of queues.
  [[nodiscard]] virtual std::span<const uint16_t> queue_sizes() const = 0;
  /// Copies configuration space from `offset`; bytes beyond its end read as 0. Any offset and length are allowed.
  virtual void read_config(uint64_t offset, std::span<std::byte> out) = 0;
  /// Writes that the specification does not allow are ignored.
  virtual void write_config(uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// The driver has set DRIVER_OK. Runs on a vCPU's thread: starts no I/O, `notify` follows for each queue.
  /// @pre not active: reset came last, or restore after it.
  virtual void activate(const VirtioActivation& activation) = 0;
  /// The driver may have put buffers into `queue`, or the device was activated or resumed.
  /// @pre active, and not paused.
  virtual void notify(uint16_t queue) = 0;
};

}  // namespace tandem::devices
