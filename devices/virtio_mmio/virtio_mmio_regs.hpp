// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Registers of the virtio-mmio transport. Spec: virtio 1.2, "MMIO Device Register Layout".
namespace tandem::devices::virtio_mmio {

/// Offset [bytes]; all are 32 bits wide; after it access, title.
enum Register : uint16_t {
  MagicValue = 0x000,         // RO  Magic value
  Version = 0x004,            // RO  Device version number
  DeviceID = 0x008,           // RO  Virtio Subsystem Device ID
  VendorID = 0x00c,           // RO  Virtio Subsystem Vendor ID
  DeviceFeatures = 0x010,     // RO  Flags representing features the device supports
  DeviceFeaturesSel = 0x014,  // WO  Device (host) features word selection
  DriverFeatures = 0x020,     // WO  Flags representing device features understood and activated by the driver
  DriverFeaturesSel = 0x024,  // WO  Activated (guest) features word selection
  QueueSel = 0x030,           // WO  Virtual queue index
  QueueNumMax = 0x034,        // RO  Maximum virtual queue size
  QueueNum = 0x038,           // WO  Virtual queue size
  QueueReady = 0x044,         // RW  Virtual queue ready bit
  QueueNotify = 0x050,        // WO  Queue notifier
  InterruptStatus = 0x060,    // RO  Interrupt status
  InterruptACK = 0x064,       // WO  Interrupt acknowledge
  Status = 0x070,             // RW  Device status
  QueueDescLow = 0x080,       // WO  Virtual queue's Descriptor Area 64 bit long physical address
  QueueDescHigh = 0x084,      // WO
  QueueDriverLow = 0x090,     // WO  Virtual queue's Driver Area 64 bit long physical address
  QueueDriverHigh = 0x094,    // WO
  QueueDeviceLow = 0x0a0,     // WO  Virtual queue's Device Area 64 bit long physical address
  QueueDeviceHigh = 0x0a4,    // WO
  SHMSel = 0x0ac,             // WO  Shared memory id
  SHMLenLow = 0x0b0,          // RO  Shared memory region 64 bit long length
  SHMLenHigh = 0x0b4,         // RO
  SHMBaseLow = 0x0b8,         // RO  Shared memory region 64 bit long physical address
  SHMBaseHigh = 0x0bc,        // RO
  ConfigGeneration = 0x0fc,   // RO  Configuration atomicity value
  Config = 0x100,             // RW  Configuration space, up to the end of the window; any width
};

inline constexpr uint32_t kMagicValue = 0x74726976;  // "virt"
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kVendorID = 0x444e4154;  // "TAND"
/// What length and base of a shared memory region read as when there is no such region.
inline constexpr uint32_t kNoSharedMemory = 0xffff'ffff;

// InterruptStatus
inline constexpr uint32_t kUsedBufferNotification = 1U << 0;
inline constexpr uint32_t kConfigurationChangeNotification = 1U << 1;

// Status. Spec: virtio 1.2, "Device Status Field"
inline constexpr uint32_t ACKNOWLEDGE = 1;
inline constexpr uint32_t DRIVER = 2;
inline constexpr uint32_t DRIVER_OK = 4;
inline constexpr uint32_t FEATURES_OK = 8;
inline constexpr uint32_t DEVICE_NEEDS_RESET = 64;
inline constexpr uint32_t FAILED = 128;

}  // namespace tandem::devices::virtio_mmio
