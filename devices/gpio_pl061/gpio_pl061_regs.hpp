// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "devices/bus/primecell.hpp"

/// Registers of the PL061. Spec: Arm DDI 0190B, "Programmers Model".
namespace tandem::devices::pl061 {

/// Offset [bytes]; after it width [bits], access, title.
enum Register : uint16_t {
  GPIODATA = 0x000,   // 8  RW  Data register; bits [9:2] of the offset mask the bits that are read or written
  GPIODIR = 0x400,    // 8  RW  Data direction register
  GPIOIS = 0x404,     // 8  RW  Interrupt sense register
  GPIOIBE = 0x408,    // 8  RW  Interrupt both edges register
  GPIOIEV = 0x40c,    // 8  RW  Interrupt event register
  GPIOIE = 0x410,     // 8  RW  Interrupt mask register
  GPIORIS = 0x414,    // 8  RO  Raw interrupt status
  GPIOMIS = 0x418,    // 8  RO  Masked interrupt status
  GPIOIC = 0x41c,     // 8  WO  Interrupt clear register
  GPIOAFSEL = 0x420,  // 8  RW  Mode control select
};

inline constexpr PrimeCellId kId{.part_number = 0x061, .revision = 0};

}  // namespace tandem::devices::pl061
