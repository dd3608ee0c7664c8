// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Spec: virtio 1.2, "Block Device".
namespace tandem::devices::virtio_blk {

inline constexpr uint32_t kDeviceId = 2;

// "Feature bits"
inline constexpr uint64_t VIRTIO_BLK_F_SIZE_MAX = 1U << 1;
inline constexpr uint64_t VIRTIO_BLK_F_SEG_MAX = 1U << 2;
inline constexpr uint64_t VIRTIO_BLK_F_RO = 1U << 5;
inline constexpr uint64_t VIRTIO_BLK_F_BLK_SIZE = 1U << 6;
inline constexpr uint64_t VIRTIO_BLK_F_FLUSH = 1U << 9;
inline constexpr uint64_t VIRTIO_BLK_F_TOPOLOGY = 1U << 10;
inline constexpr uint64_t VIRTIO_BLK_F_DISCARD = 1U << 13;
inline constexpr uint64_t VIRTIO_BLK_F_WRITE_ZEROES = 1U << 14;

/// "Device configuration layout", without the fields of later features.
struct Config {
  uint64_t capacity = 0;  ///< [sectors]
  uint32_t size_max = 0;
  uint32_t seg_max = 0;
  uint16_t geometry_cylinders = 0;
  uint8_t geometry_heads = 0;
  uint8_t geometry_sectors = 0;
  uint32_t blk_size = 0;
  uint8_t topology_physical_block_exp = 0;
  uint8_t topology_alignment_offset = 0;
  uint16_t topology_min_io_size = 0;
  uint32_t topology_opt_io_size = 0;
  uint8_t writeback = 0;
  uint8_t unused0 = 0;
  uint16_t num_queues = 0;
  uint32_t max_discard_sectors = 0;
  uint32_t max_discard_seg = 0;
  uint32_t discard_sector_alignment = 0;
  uint32_t max_write_zeroes_sectors = 0;
  uint32_t max_write_zeroes_seg = 0;
  uint8_t write_zeroes_may_unmap = 0;
  uint8_t unused1[3] = {};
};
static_assert(offsetof(Config, blk_size) == 20);
static_assert(offsetof(Config, max_discard_sectors) == 36);
static_assert(sizeof(Config) == 64);  // 60, and padding that reads as zero

// "Device Operation"
struct RequestHeader {
  uint32_t type;
  uint32_t reserved;
  uint64_t sector;
};
static_assert(sizeof(RequestHeader) == 16);

inline constexpr uint32_t VIRTIO_BLK_T_IN = 0;
inline constexpr uint32_t VIRTIO_BLK_T_OUT = 1;
inline constexpr uint32_t VIRTIO_BLK_T_FLUSH = 4;
inline constexpr uint32_t VIRTIO_BLK_T_GET_ID = 8;
inline constexpr uint32_t VIRTIO_BLK_T_DISCARD = 11;
inline constexpr uint32_t VIRTIO_BLK_T_WRITE_ZEROES = 13;

inline constexpr size_t kIdBytes = 20;

/// One piece of the data of VIRTIO_BLK_T_DISCARD and VIRTIO_BLK_T_WRITE_ZEROES.
struct DiscardWriteZeroes {
  uint64_t sector;
  uint32_t num_sectors;
  uint32_t flags;
};
static_assert(sizeof(DiscardWriteZeroes) == 16);
inline constexpr uint32_t kFlagUnmap = 1;

enum class Status : uint8_t {
  VIRTIO_BLK_S_OK = 0,
  VIRTIO_BLK_S_IOERR = 1,
  VIRTIO_BLK_S_UNSUPP = 2,
};

}  // namespace tandem::devices::virtio_blk
