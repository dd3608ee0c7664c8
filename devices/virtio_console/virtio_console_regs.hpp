// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// virtio 1.2, "Console Device".
namespace tandem::devices::virtio_console {

inline constexpr uint32_t kDeviceId = 3;

// "Feature bits"
inline constexpr uint64_t kFSize = uint64_t{1} << 0;
inline constexpr uint64_t kFEmergWrite = uint64_t{1} << 2;

// "Virtqueues" of port 0
inline constexpr uint16_t kReceiveQueue = 0;
inline constexpr uint16_t kTransmitQueue = 1;

// "Device configuration layout": offset, width, access
inline constexpr size_t kCols = 0;        // 2, read-only; with kFSize
inline constexpr size_t kRows = 2;        // 2, read-only; with kFSize
inline constexpr size_t kMaxNrPorts = 4;  // 4, read-only; with VIRTIO_CONSOLE_F_MULTIPORT
inline constexpr size_t kEmergWr = 8;     // 4, write-only; with kFEmergWrite
inline constexpr size_t kConfigBytes = 12;

}  // namespace tandem::devices::virtio_console
