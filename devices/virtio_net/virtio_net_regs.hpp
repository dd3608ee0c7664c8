// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// virtio 1.2, "Network Device".
namespace tandem::devices::virtio_net {

inline constexpr uint32_t kDeviceId = 1;

// "Feature bits"
inline constexpr uint64_t kFCsum = uint64_t{1} << 0;
inline constexpr uint64_t kFGuestCsum = uint64_t{1} << 1;
inline constexpr uint64_t kFMtu = uint64_t{1} << 3;
inline constexpr uint64_t kFMac = uint64_t{1} << 5;
inline constexpr uint64_t kFGuestTso4 = uint64_t{1} << 7;
inline constexpr uint64_t kFGuestTso6 = uint64_t{1} << 8;
inline constexpr uint64_t kFGuestEcn = uint64_t{1} << 9;
inline constexpr uint64_t kFHostTso4 = uint64_t{1} << 11;
inline constexpr uint64_t kFHostTso6 = uint64_t{1} << 12;
inline constexpr uint64_t kFHostEcn = uint64_t{1} << 13;
inline constexpr uint64_t kFMrgRxbuf = uint64_t{1} << 15;
inline constexpr uint64_t kFStatus = uint64_t{1} << 16;
inline constexpr uint64_t kFGuestUso4 = uint64_t{1} << 54;
inline constexpr uint64_t kFGuestUso6 = uint64_t{1} << 55;
inline constexpr uint64_t kFHostUso = uint64_t{1} << 56;

// "Virtqueues" of one queue pair
inline constexpr uint16_t kReceiveQueue = 0;
inline constexpr uint16_t kTransmitQueue = 1;

// "Device configuration layout": offset, width; all read-only
inline constexpr size_t kMac = 0;                // 6
inline constexpr size_t kStatus = 6;             // 2
inline constexpr size_t kMaxVirtqueuePairs = 8;  // 2; with VIRTIO_NET_F_MQ
inline constexpr size_t kMtu = 10;               // 2
inline constexpr size_t kConfigBytes = 12;

inline constexpr uint16_t kStatusLinkUp = 1;

/// "Device Operation": what precedes every packet.
struct Header {
  uint8_t flags;
  uint8_t gso_type;
  uint16_t hdr_len;  ///< A hint.
  uint16_t gso_size;
  uint16_t csum_start;
  uint16_t csum_offset;
  uint16_t num_buffers;  ///< Received packets only.
};
static_assert(sizeof(Header) == 12);
inline constexpr size_t kFlags = offsetof(Header, flags);
inline constexpr size_t kNumBuffers = offsetof(Header, num_buffers);

inline constexpr uint8_t kHdrNeedsCsum = 1;

inline constexpr uint8_t kGsoNone = 0;
inline constexpr uint8_t kGsoTcpV4 = 1;
inline constexpr uint8_t kGsoTcpV6 = 4;
inline constexpr uint8_t kGsoUdpL4 = 5;
inline constexpr uint8_t kGsoEcn = 0x80;

}  // namespace tandem::devices::virtio_net
