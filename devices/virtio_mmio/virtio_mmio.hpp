// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "devices/bus/device_executor.hpp"
#include "devices/bus/fdt_node.hpp"
#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "devices/virtio_mmio/virtio_mmio_state.hpp"
#include "devices/virtio_queue/split_queue.hpp"
#include "devices/virtio_queue/virtio_device.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

/// The virtio-mmio transport, version 2 (not legacy), in front of one device.
///
/// A doorbell is a write to QueueNotify. The machine registers ioeventfds for it (`doorbell_offset`, the queue's index
/// as datamatch) and calls `notify` on the event loop; a write that arrives here is passed on through the executor, one
/// at a time for each queue, so that no vCPU thread does a device's I/O.
///
/// What a driver gets wrong: a queue that cannot be used, or a ring that breaks the rules, sets DEVICE_NEEDS_RESET;
/// everything else that is not allowed at the time is ignored, and reads back unchanged (FEATURES_OK with features that
/// were not offered or without VERSION_1, DRIVER_OK without FEATURES_OK, status bits taken back, registers of a queue
/// that is ready or does not exist). A reset waits for I/O in flight and is complete when the write returns.
///
/// Not offered: packed rings, queue reset, notification data, shared memory regions.
/// @spec  virtio 1.2, "Virtio Over MMIO"
class VirtioMmio final : public MmioHandler, public Component, public VirtioTransport {
 public:
  static constexpr uint64_t kWindowBytes = 0x200;

  /// @pre  `executor` runs `device`; all that is referred to outlives the transport.
  VirtioMmio(std::string name, IrqLine irq, VirtioDevice& device, const GuestMemory& memory, DeviceExecutor& executor);
  VirtioMmio(const VirtioMmio&) = delete;
  VirtioMmio& operator=(const VirtioMmio&) = delete;
  ~VirtioMmio() override = default;

  /// Where in the window a 32-bit write of a queue's index is that queue's doorbell.
  static constexpr uint64_t doorbell_offset() { return 0x50; }
  [[nodiscard]] uint16_t queue_count() const { return static_cast<uint16_t>(queues_.size()); }

  /// A doorbell rang; may be spurious, and for any queue.
  /// @thread  the event loop, with the device's mutex held.
  void notify(uint16_t queue);

  MmioRead read(MmioAccess access) override;
  MmioWrite write(MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  void notify_used(uint16_t queue) override;
  void notify_config() override;
  void set_needs_reset(std::string_view why) override;

  /// The node "virtio_mmio@…". (Linux binding "virtio,mmio")
  static FdtNode describe(const FdtPlacement& placement);

 private:
  struct State {
    uint32_t status = 0;
    uint32_t device_features_sel = 0;
    uint32_t driver_features_sel = 0;
    uint64_t driver_features = 0;
    uint32_t queue_sel = 0;
    uint32_t interrupt_status = 0;
    uint32_t config_generation = 0;
  };

  [[nodiscard]] MmioRead read_register(uint64_t offset) const;
  [[nodiscard]] MmioWrite write_register(uint64_t offset, uint32_t value);
  /// @return false when there is no such queue register.
  bool write_queue_register(uint64_t offset, uint32_t value);
  [[nodiscard]] uint64_t read_config(MmioAccess access);
  void write_config(MmioAccess access, uint64_t value);
  void write_status(uint32_t value);
  void write_driver_features(uint32_t value);
  void write_queue_ready(bool ready);
  void enable_queue();
  void disable_queue();

  [[nodiscard]] uint64_t offered_features() const;
  [[nodiscard]] bool accepts(uint64_t driver_features) const;
  [[nodiscard]] bool has_status(uint32_t bit) const { return (state_.status & bit) != 0; }
  [[nodiscard]] bool is_active() const;
  void activate();
  /// Calls `notify` soon, on the event loop; once, however often it is asked for before.
  void post_notify(uint16_t queue);
  void post_notify_all();
  void raise(uint32_t interrupt);

  [[nodiscard]] Result<void> check(const VirtioMmioStateV1& saved) const;
  [[nodiscard]] Result<void> restore_queues(const VirtioMmioStateV1& saved);

  // Fixed configuration
  const std::string name_;

  // Connections
  IrqLine irq_;
  VirtioDevice& device_;
  const GuestMemory& memory_;
  DeviceExecutor& executor_;

  // Guest-visible state
  State state_;
  std::vector<SplitQueue> queues_;
  std::vector<SplitQueue::State> setups_;  // by queue: what the driver wrote before QueueReady

  // Book-keeping
  bool paused_ = false;
  std::vector<bool> notify_posted_;  // by queue
  log::RateLimit resets_needed_;
};

}  // namespace tandem::devices
