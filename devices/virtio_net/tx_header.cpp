// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_net/tx_header.hpp"

namespace tandem::devices::virtio_net {
namespace {

/// Whether the driver may leave segmentation of kind `gso_type` to the device.
bool may_segment(uint8_t gso_type, uint64_t features) {
  const bool ecn = (gso_type & kGsoEcn) != 0;
  if (ecn && (features & kFHostEcn) == 0) {
    return false;
  }
  switch (gso_type & ~kGsoEcn) {
    case kGsoTcpV4:
      return (features & kFHostTso4) != 0;
    case kGsoTcpV6:
      return (features & kFHostTso6) != 0;
    case kGsoUdpL4:
      return !ecn && (features & kFHostUso) != 0;
    default:
      return false;
  }
}

/// Checks what is asked for about checksums; without it the fields mean nothing, and are cleared.
bool check_checksum(Header& header, size_t frame_bytes, uint64_t features) {
  header.flags &= kHdrNeedsCsum;
  if (header.flags == 0) {
    header.csum_start = 0;
    header.csum_offset = 0;
    return true;
  }
  constexpr size_t kChecksumBytes = 2;
  return (features & kFCsum) != 0 && size_t{header.csum_start} + header.csum_offset + kChecksumBytes <= frame_bytes;
}

/// The same for segmentation.
bool check_segmentation(Header& header, size_t frame_bytes, uint64_t features) {
  if (header.gso_type == kGsoNone) {
    header.gso_size = 0;
    header.hdr_len = 0;
    return true;
  }
  // A hint: what cannot be true is not passed on, as the host would refuse the packet for it.
  if (header.hdr_len < kMinFrameBytes || header.hdr_len > frame_bytes) {
    header.hdr_len = 0;
  }
  return header.gso_size != 0 && may_segment(header.gso_type, features);
}

}  // namespace

std::optional<Header> checked_tx_header(const DescriptorChain& packet, uint64_t features) {
  Header header{};
  if (packet.read(0, std::as_writable_bytes(std::span(&header, 1))) != sizeof header) {
    return std::nullopt;
  }
  const uint64_t frame_bytes = packet.readable_size() - sizeof header;
  if (frame_bytes < kMinFrameBytes || frame_bytes > kMaxFrameBytes || !check_checksum(header, frame_bytes, features) ||
      !check_segmentation(header, frame_bytes, features)) {
    return std::nullopt;
  }
  header.num_buffers = 0;
  return header;
}

}  // namespace tandem::devices::virtio_net
