// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// virtio 1.2, "Traditional Memory Balloon Device".
namespace tandem::devices::virtio_balloon {

inline constexpr uint32_t kDeviceId = 5;

// "Feature bits"
inline constexpr uint64_t kFMustTellHost = uint64_t{1} << 0;
inline constexpr uint64_t kFStatsVq = uint64_t{1} << 1;
inline constexpr uint64_t kFDeflateOnOom = uint64_t{1} << 2;
inline constexpr uint64_t kFPageReporting = uint64_t{1} << 5;

// "Virtqueues"
inline constexpr uint16_t kInflateQueue = 0;
inline constexpr uint16_t kDeflateQueue = 1;
inline constexpr uint16_t kStatsQueue = 2;
inline constexpr uint16_t kFreePageQueue = 3;
inline constexpr uint16_t kReportingQueue = 4;
inline constexpr uint16_t kQueueCount = 5;

// "Device configuration layout": offset, width, access
inline constexpr size_t kNumPages = 0;  // 4, read-only
inline constexpr size_t kActual = 4;    // 4, read-write
inline constexpr size_t kConfigBytes = 16;

/// Unit of all page numbers and counts, whatever the guest's and the host's page sizes [bytes].
inline constexpr uint64_t kPageBytes = 4096;

// "Memory Statistics": entries of `u16 tag, u64 value` without padding
inline constexpr size_t kStatTagBytes = 2;
inline constexpr size_t kStatEntryBytes = 10;

}  // namespace tandem::devices::virtio_balloon
