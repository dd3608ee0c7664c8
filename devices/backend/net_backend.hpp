// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Work on packets that the sender may leave to the receiver.
struct NetOffloads {
  bool checksum = false;  ///< Filling in TCP and UDP checksums; the others need it.
  bool tso4 = false;      ///< Cutting TCP over IPv4 into segments.
  bool tso6 = false;      ///< Cutting TCP over IPv6 into segments.
  bool ecn = false;       ///< Cutting TCP with explicit congestion notification.
  bool uso = false;       ///< Cutting UDP into datagrams.
  bool operator==(const NetOffloads&) const = default;
};

/// Why a packet did not pass.
enum class NetStall : uint8_t {
  kWouldBlock,  ///< Nothing to receive, or no room to send: NetBackend::wait_for tells when to try again.
  kDropped,     ///< This packet is refused; others may pass.
  kGone,        ///< The network is no more.
};

/// Bytes passed, the header included, or why none.
using NetTransfer = std::expected<size_t, NetStall>;

/// The device that a backend belongs to. Called with the device's mutex held.
class NetClient {
 public:
  virtual ~NetClient() = default;
  /// One of the events that the client waits for has come; said again until the client has acted on it or waits no more.
  virtual void net_ready(Events events) = 0;
};

/// The host's end of a network interface. Belongs to one device and is called under its mutex; never blocks.
/// Each packet is an Ethernet frame behind a 12-byte header. (virtio 1.2, "struct virtio_net_hdr")
class NetBackend {
 public:
  virtual ~NetBackend() = default;

  /// What the backend takes over from a sender.
  [[nodiscard]] virtual NetOffloads offloads() const = 0;
  /// Longest payload of a frame that passes the network [bytes].
  [[nodiscard]] virtual uint16_t mtu() const = 0;

  /// Names who hears of events, or nobody with nullptr.
  virtual void set_client(NetClient* client) = 0;
  /// Which events the client hears of; kNone at first.
  virtual void wait_for(Events events) = 0;

  /// Starts afresh: packets that came in before are dropped, those that come from now on may need `receive` of offloads.
  virtual Result<void> start(NetOffloads receive) = 0;

  /// Receives one packet; what is longer than `places` together is cut off.
  virtual NetTransfer receive(std::span<const iovec> places) = 0;
  /// Sends one packet.
  virtual NetTransfer send(std::span<const iovec> pieces) = 0;
};

}  // namespace tandem::devices
