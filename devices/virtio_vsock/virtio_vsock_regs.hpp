// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// virtio 1.2, "Socket Device".
namespace tandem::devices::virtio_vsock {

inline constexpr uint32_t kDeviceId = 19;

// "Feature bits"
inline constexpr uint64_t kFStream = uint64_t{1} << 0;
inline constexpr uint64_t kFSeqpacket = uint64_t{1} << 1;

// "Virtqueues"
inline constexpr uint16_t kReceiveQueue = 0;
inline constexpr uint16_t kTransmitQueue = 1;
inline constexpr uint16_t kEventQueue = 2;

// "Device configuration layout": offset, width; read-only
inline constexpr size_t kGuestCid = 0;  // 8; the upper 32 bits are zero
inline constexpr size_t kConfigBytes = 8;

// Context identifiers: 0 and 1 are reserved, the last one stands for any.
inline constexpr uint64_t kHostCid = 2;
inline constexpr uint64_t kFirstGuestCid = 3;
inline constexpr uint64_t kAnyCid = UINT32_MAX;

/// "Device Operation": what starts every packet. In memory it ends with `fwd_cnt`; the last bytes are not the packet's.
struct Header {
  uint64_t src_cid;
  uint64_t dst_cid;
  uint32_t src_port;
  uint32_t dst_port;
  uint32_t len;
  uint16_t type;
  uint16_t op;
  uint32_t flags;
  uint32_t buf_alloc;
  uint32_t fwd_cnt;
};
inline constexpr size_t kHeaderBytes = 44;
static_assert(offsetof(Header, fwd_cnt) + sizeof(Header::fwd_cnt) == kHeaderBytes);

inline constexpr uint16_t kTypeStream = 1;

inline constexpr uint16_t kOpRequest = 1;
inline constexpr uint16_t kOpResponse = 2;
inline constexpr uint16_t kOpRst = 3;
inline constexpr uint16_t kOpShutdown = 4;
inline constexpr uint16_t kOpRw = 5;
inline constexpr uint16_t kOpCreditUpdate = 6;
inline constexpr uint16_t kOpCreditRequest = 7;

// Flags of kOpShutdown
inline constexpr uint32_t kShutdownReceive = 1;  ///< The sender takes no more data.
inline constexpr uint32_t kShutdownSend = 2;     ///< The sender gives no more data.
inline constexpr uint32_t kShutdownBoth = kShutdownReceive | kShutdownSend;

/// "Device Events"
struct Event {
  uint32_t id;
};
inline constexpr uint32_t kEventTransportReset = 0;

}  // namespace tandem::devices::virtio_vsock
