// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "devices/backend/entropy_source.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/virtio_queue/virtio_device.hpp"

namespace tandem::devices {

/// Entropy device: fills the driver's buffers with random bytes. No state of its own.
/// A guest that asks without end gets its bytes in runs, between which the event loop serves the other devices.
/// @spec  virtio 1.2, "Entropy Device"
class VirtioRng final : public VirtioDevice {
 public:
  /// Most bytes of one buffer that are filled; the specification lets a device return fewer than there is room for.
  static constexpr size_t kMaxBytesPerBuffer = 16U << 10;
  /// Most buffers that are filled before other devices have their turn.
  static constexpr unsigned kBuffersPerRun = 16;

  /// @pre `executor` and `source` outlive the device, and the device the event loop's last callback.
  VirtioRng(std::string name, DeviceExecutor& executor, EntropySource& source)
      : name_(std::move(name)), executor_(executor), source_(source) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  [[nodiscard]] uint32_t device_id() const override { return 4; }
  [[nodiscard]] uint64_t device_features() const override { return 0; }
  [[nodiscard]] std::span<const uint16_t> queue_sizes() const override { return kQueueSizes; }
  void read_config(uint64_t offset, std::span<std::byte> out) override;
  void write_config(uint64_t offset, std::span<const std::byte> bytes) override;
  void activate(const VirtioActivation& activation) override;
  void notify(uint16_t queue) override;

 private:
  static constexpr std::array<uint16_t, 1> kQueueSizes{64};

  void serve();
  bool fill_next(SplitQueue& queue);
  bool fill(DescriptorChain& chain, uint32_t& written_bytes);
  void stop(std::string_view why);
  void serve_later();

  // Fixed configuration
  const std::string name_;
  // Connections
  DeviceExecutor& executor_;
  EntropySource& source_;
  std::optional<VirtioActivation> active_;
  // Book-keeping
  bool paused_ = false;
  bool posted_ = false;
};

}  // namespace tandem::devices
