// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "devices/virtio_net/virtio_net_regs.hpp"
#include "devices/virtio_queue/split_queue.hpp"

namespace tandem::devices::virtio_net {

/// Shortest frame that is sent: an Ethernet header.
inline constexpr size_t kMinFrameBytes = 14;
/// Longest frame that is sent or received: an IP packet, an Ethernet header, a VLAN tag.
inline constexpr size_t kMaxFrameBytes = 65535 + 14 + 4;

/// A copy of the header of a packet to be sent, fit to be given to the host: what the driver may leave to the device is
/// checked against `features` and the packet's length, and what a device is to ignore is cleared.
/// @return nothing when the buffer is no packet that may be sent.
[[nodiscard]] std::optional<Header> checked_tx_header(const DescriptorChain& packet, uint64_t features);

}  // namespace tandem::devices::virtio_net
