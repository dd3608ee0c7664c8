// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/virtio_queue/virtio_device.hpp"

namespace tandem::devices {

/// Size of a terminal in characters; 0 × 0 when it is not known.
struct ConsoleSize {
  uint16_t cols = 0;
  uint16_t rows = 0;
  bool operator==(const ConsoleSize&) const = default;
};

/// Console device with one port (hvc0 in Linux). Not modelled: VIRTIO_CONSOLE_F_MULTIPORT.
/// Input is taken from the backend only while the driver has given buffers for it, so none is lost, however much is
/// pasted. Output is passed on in runs, between which the event loop serves the other devices.
/// @spec  virtio 1.2, "Console Device"
class VirtioConsole final : public VirtioDevice, private CharSink {
 public:
  /// Most output that is passed on before other devices have their turn [bytes].
  static constexpr size_t kBytesPerRun = 64U << 10;
  /// Most buffers that are taken before other devices have their turn.
  static constexpr unsigned kBuffersPerRun = 64;

  /// @pre `executor` and `backend` outlive the device, and the device the event loop's last callback.
  VirtioConsole(std::string name, DeviceExecutor& executor, CharBackend& backend);
  ~VirtioConsole() override;

  /// Tells the driver that the terminal has another size.
  void set_size(ConsoleSize size);

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  [[nodiscard]] uint32_t device_id() const override;
  [[nodiscard]] uint64_t device_features() const override;
  [[nodiscard]] std::span<const uint16_t> queue_sizes() const override { return kQueueSizes; }
  void read_config(uint64_t offset, std::span<std::byte> out) override;
  void write_config(uint64_t offset, std::span<const std::byte> bytes) override;
  void activate(const VirtioActivation& activation) override;
  void notify(uint16_t queue) override;

 private:
  static constexpr std::array<uint16_t, 2> kQueueSizes{64, 64};

  // CharSink
  [[nodiscard]] size_t room() const override;
  void receive(std::span<const std::byte> bytes) override;

  void take_receive_buffer();
  void put_back_receive_buffer();
  void transmit();
  enum class Step : uint8_t { kDone, kPartly, kIdle };
  Step transmit_next(size_t& left_bytes);
  size_t output(const DescriptorChain& chain, uint64_t offset, size_t limit_bytes);
  void transmit_later();
  void signal(uint16_t queue);
  void stop(std::string_view why);
  [[nodiscard]] bool is_running() const { return active_ && !paused_; }

  // Fixed configuration
  const std::string name_;
  // Connections
  DeviceExecutor& executor_;
  CharBackend& backend_;
  std::optional<VirtioActivation> active_;
  // Guest-visible state
  ConsoleSize size_;
  uint64_t transmitted_bytes_ = 0;  // of the next transmit buffer
  // Book-keeping
  std::optional<DescriptorChain> receive_buffer_;  // where the next input goes
  bool paused_ = false;
  bool posted_ = false;
};

}  // namespace tandem::devices
