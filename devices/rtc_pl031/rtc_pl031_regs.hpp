// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "devices/bus/primecell.hpp"

/// Registers of the PL031. Spec: Arm DDI 0224, "Programmers Model".
namespace tandem::devices::pl031 {

/// Offset [bytes]; after it width [bits], access, title.
enum Register : uint16_t {
  RTCDR = 0x000,    // 32  RO  Data Register
  RTCMR = 0x004,    // 32  RW  Match Register
  RTCLR = 0x008,    // 32  RW  Load Register
  RTCCR = 0x00c,    //  1  RW  Control Register
  RTCIMSC = 0x010,  //  1  RW  Interrupt Mask Set or Clear register
  RTCRIS = 0x014,   //  1  RO  Raw Interrupt Status
  RTCMIS = 0x018,   //  1  RO  Masked Interrupt Status
  RTCICR = 0x01c,   //  1  WO  Interrupt Clear Register
};

inline constexpr uint32_t kRTCCR_Start = 1;
inline constexpr uint32_t kInterrupt = 1;  // RTCIMSC, RTCRIS, RTCMIS, RTCICR

inline constexpr PrimeCellId kId{.part_number = 0x031, .revision = 1};

}  // namespace tandem::devices::pl031
