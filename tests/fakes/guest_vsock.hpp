// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "devices/virtio_queue/virtio_device.hpp"
#include "devices/virtio_vsock/virtio_vsock_regs.hpp"
#include "tests/fakes/virtio_rig.hpp"

namespace tandem::devices {

/// A packet as the guest sends or gets it.
struct VsockPacket {
  virtio_vsock::Header header{};
  std::string data;
};

/// The driver's side of a socket device: gives receive buffers, sends packets that the test makes, and keeps what comes.
class GuestVsock {
 public:
  static constexpr uint64_t kCid = 3;
  /// The guest's own, that it tells of in every packet.
  static constexpr uint32_t kBufferBytes = 256U << 10;
  static constexpr uint32_t kReceiveBufferBytes = 4096;
  /// Most data in one packet that the guest sends.
  static constexpr uint32_t kMostDataBytes = 16U << 10;

  GuestVsock(VirtioRig& rig, VirtioDevice& device) : rig_(rig), device_(device) {}

  /// Sets the device up; the queues' buffers start afresh.
  void activate(uint64_t features = virtio_vsock::kFStream);
  /// Gives up to `count` receive buffers, and rings.
  void give_buffers(size_t count);
  /// Gives `count` buffers for events, and rings.
  void give_event_buffers(size_t count);

  /// A header from the guest's port to the host's.
  [[nodiscard]] static virtio_vsock::Header header(uint16_t op, uint32_t guest_port, uint32_t host_port);
  /// Sends a packet, and rings. `header.len` is sent as it is.
  void send(const virtio_vsock::Header& header, std::string_view data = {});
  /// Sends any bytes in place of a packet, and rings.
  void send_bytes(std::span<const std::byte> bytes);
  void send(uint16_t op, uint32_t guest_port, uint32_t host_port, uint32_t flags = 0);
  void send_data(uint32_t guest_port, uint32_t host_port, std::string_view data);

  /// The next packet that came; buffers are given back to the device as they are emptied.
  std::optional<VsockPacket> next();
  /// The next event's id, whose buffer stays with the driver.
  std::optional<uint32_t> next_event();

  /// What the guest's programs have read, as it is told in packets from now on.
  void set_fwd_cnt(uint32_t guest_port, uint32_t bytes) { fwd_cnt_[guest_port] = bytes; }
  /// Whether `next` gives its buffer back.
  void set_refilling(bool refilling) { refilling_ = refilling; }

 private:
  void take_back_transmitted();

  VirtioRig& rig_;
  VirtioDevice& device_;
  std::map<uint16_t, GuestAddr> receive_buffers_;  // by head
  std::deque<GuestAddr> free_receive_;
  std::map<uint16_t, GuestAddr> transmit_buffers_;
  std::deque<GuestAddr> free_transmit_;
  std::map<uint16_t, GuestAddr> event_buffers_;
  std::map<uint32_t, uint32_t> fwd_cnt_;
  bool refilling_ = true;
};

}  // namespace tandem::devices
