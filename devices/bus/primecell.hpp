// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <optional>

#include "devices/bus/mmio_handler.hpp"

/// What Arm's PrimeCell peripherals (PL011, PL031, PL061) have in common: 32-bit slots in a window of 4 KiB, and eight
/// identification registers at its end.
namespace tandem::devices {

inline constexpr uint64_t kPrimeCellWindowBytes = 0x1000;

/// Contents of PeriphID0–3.
struct PrimeCellId {
  uint16_t part_number;  ///< PartNumber, 12 bits.
  uint8_t revision;      ///< Revision, 4 bits.
};

/// The value of the identification register at `offset`, if one is there.
/// @spec Arm DDI 0183G, "Peripheral Identification Registers, UARTPeriphID0-3" and "PrimeCell Identification Registers,
///       UARTPCellID0-3"; the other parts have the same.
[[nodiscard]] constexpr std::optional<uint8_t> primecell_id(PrimeCellId id, uint64_t offset) {
  constexpr uint8_t kDesigner = 0x41;  // Arm
  switch (offset) {
    case 0xfe0:
      return static_cast<uint8_t>(id.part_number);
    case 0xfe4:
      return static_cast<uint8_t>((id.part_number >> 8) | ((kDesigner & 0xf) << 4));
    case 0xfe8:
      return static_cast<uint8_t>((kDesigner >> 4) | (id.revision << 4));
    case 0xfec:
      return 0;  // Configuration
    case 0xff0:
      return 0x0d;
    case 0xff4:
      return 0xf0;
    case 0xff8:
      return 0x05;
    case 0xffc:
      return 0xb1;
    default:
      return std::nullopt;
  }
}

/// Checks that the access is one that the peripheral bus (APB) can carry: 8, 16 or 32 bits at the start of a slot.
[[nodiscard]] constexpr std::expected<void, BadAccess> check_primecell_access(MmioAccess access) {
  if (access.width_bytes > 4) {
    return std::unexpected(BadAccess::kWidth);
  }
  if (access.offset % access.width_bytes != 0) {
    return std::unexpected(BadAccess::kAlignment);
  }
  if (access.offset % 4 != 0) {
    return std::unexpected(BadAccess::kNoRegister);
  }
  return {};
}

}  // namespace tandem::devices
