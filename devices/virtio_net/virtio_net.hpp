// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/backend/net_backend.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/virtio_queue/virtio_device.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

using MacAddress = std::array<uint8_t, 6>;

/// What passed a network device since it was made.
struct NetCounters {
  uint64_t received_packets = 0;
  uint64_t received_bytes = 0;
  uint64_t receive_drops = 0;  ///< Packets that did not fit the driver's buffers.
  uint64_t sent_packets = 0;
  uint64_t sent_bytes = 0;
  uint64_t send_drops = 0;  ///< Packets that the driver described wrongly, or the host refused.
  bool operator==(const NetCounters&) const = default;
};

/// Network device with one pair of queues, merged receive buffers, and checksum and segmentation offloads.
///
/// Received packets go straight into the driver's first buffer; only what it does not hold is copied, into further
/// buffers. While the driver gives none, packets wait in the host's interface. Packets to be sent go out of the
/// driver's buffers, behind a checked copy of their header. Work is done in runs, between which the event loop serves
/// the other devices. Packets that came in before the driver was there are dropped.
/// Not modelled: the control queue, several queue pairs, UDP fragmentation offload.
/// @spec  virtio 1.2, "Network Device"
class VirtioNet final : public VirtioDevice, private NetClient {
 public:
  /// Most packets in one direction before other devices have their turn.
  static constexpr unsigned kPacketsPerRun = 64;

  /// @pre `mac` is unicast; `executor` and `backend` outlive the device, and the device the event loop's last callback.
  VirtioNet(std::string name, const MacAddress& mac, DeviceExecutor& executor, NetBackend& backend);
  ~VirtioNet() override;

  [[nodiscard]] const NetCounters& counters() const { return counters_; }

  /// Tells the network that the guest's address is reached here now: a RARP request with it, broadcast, makes switches learn
  /// the way. To be called after an arrival, with the device's mutex held.
  /// @spec  RFC 903
  void announce();

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
  static constexpr std::array<uint16_t, 2> kQueueSizes{256, 256};

  struct State {
    MacAddress mac{};
    uint16_t status = 0;
    uint16_t mtu = 0;
  };
  /// A packet on its way to the driver: its first `direct_bytes` are in the first buffer, the rest is in `store_`.
  struct Arrival {
    size_t bytes = 0;
    size_t direct_bytes = 0;
  };

  // NetClient
  void net_ready(Events events) override;

  void receive();
  bool receive_packet();
  bool take_receive_buffer();
  std::expected<Arrival, NetStall> receive_into(DescriptorChain& first);
  bool deliver(Arrival arrival);
  void fill_buffers(Arrival arrival);
  void hold(Arrival arrival);
  void put_back_buffers();

  void transmit();
  enum class Step : uint8_t { kDone, kIdle, kBlocked };
  Step transmit_next();
  NetTransfer send(const DescriptorChain& packet);
  void transmit_later();

  void update_wait();
  void set_link(bool up);
  void signal(uint16_t queue);
  void stop(std::string_view why);
  [[nodiscard]] bool is_running() const { return active_ && !paused_; }
  [[nodiscard]] bool has_feature(uint64_t feature) const { return (active_->features & feature) != 0; }

  // Fixed configuration
  const std::string name_;
  // Connections
  DeviceExecutor& executor_;
  NetBackend& backend_;
  std::optional<VirtioActivation> active_;
  // Guest-visible state
  State state_;
  // Book-keeping
  NetCounters counters_;
  bool paused_ = false;
  bool is_gone_ = false;                     // the backend has no network any more
  bool is_starved_ = false;                  // the driver has given no receive buffer
  bool is_blocked_ = false;                  // the backend has no room to send
  bool posted_ = false;                      // a run of `transmit` is due
  size_t held_bytes_ = 0;                    // of the packet in `store_` that waits for buffers
  std::unique_ptr<std::byte[]> store_;       // room for one packet; pages that no packet reaches stay unused
  std::vector<SplitQueue::Filled> buffers_;  // of the packet being received
  std::vector<iovec> pieces_;
  log::RateLimit start_failures_;
};

}  // namespace tandem::devices
