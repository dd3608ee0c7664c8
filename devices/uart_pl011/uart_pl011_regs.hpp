// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "devices/bus/primecell.hpp"

/// Registers of the PL011. Spec: Arm DDI 0183G, "Programmers Model".
namespace tandem::devices::pl011 {

/// Offset [bytes]; after it width [bits], access, title.
enum Register : uint16_t {
  UARTDR = 0x000,     // 12  RW  Data Register
  UARTRSR = 0x004,    //  4  RO  Receive Status Register; written as UARTECR, Error Clear Register
  UARTFR = 0x018,     //  9  RO  Flag Register
  UARTILPR = 0x020,   //  8  RW  IrDA Low-Power Counter Register
  UARTIBRD = 0x024,   // 16  RW  Integer Baud Rate Register
  UARTFBRD = 0x028,   //  6  RW  Fractional Baud Rate Register
  UARTLCR_H = 0x02c,  //  8  RW  Line Control Register
  UARTCR = 0x030,     // 16  RW  Control Register
  UARTIFLS = 0x034,   //  6  RW  Interrupt FIFO Level Select Register
  UARTIMSC = 0x038,   // 11  RW  Interrupt Mask Set/Clear Register
  UARTRIS = 0x03c,    // 11  RO  Raw Interrupt Status Register
  UARTMIS = 0x040,    // 11  RO  Masked Interrupt Status Register
  UARTICR = 0x044,    // 11  WO  Interrupt Clear Register
  UARTDMACR = 0x048,  //  3  RW  DMA Control Register
};

// Bits that can be written; the others read as zero.
inline constexpr uint16_t kUARTILPR_Mask = 0xff;
inline constexpr uint16_t kUARTIBRD_Mask = 0xffff;
inline constexpr uint16_t kUARTFBRD_Mask = 0x3f;
inline constexpr uint16_t kUARTLCR_H_Mask = 0xff;
inline constexpr uint16_t kUARTCR_Mask = 0xff87;
inline constexpr uint16_t kUARTIFLS_Mask = 0x3f;
inline constexpr uint16_t kUARTDMACR_Mask = 0x7;
inline constexpr uint16_t kInterruptMask = 0x7ff;  // UARTIMSC, UARTICR

// "Receive Status Register/Error Clear Register, UARTRSR/UARTECR"
inline constexpr uint8_t kRSR_OE = 1U << 3;
inline constexpr unsigned kUARTDR_ErrorShift = 8;

// "Flag Register, UARTFR"
inline constexpr uint16_t kFR_CTS = 1U << 0;
inline constexpr uint16_t kFR_DSR = 1U << 1;
inline constexpr uint16_t kFR_DCD = 1U << 2;
inline constexpr uint16_t kFR_RXFE = 1U << 4;
inline constexpr uint16_t kFR_RXFF = 1U << 6;
inline constexpr uint16_t kFR_TXFE = 1U << 7;
inline constexpr uint16_t kFR_RI = 1U << 8;

// "Line Control Register, UARTLCR_H"
inline constexpr uint16_t kLCR_H_FEN = 1U << 4;

// "Control Register, UARTCR"
inline constexpr uint16_t kCR_UARTEN = 1U << 0;
inline constexpr uint16_t kCR_LBE = 1U << 7;
inline constexpr uint16_t kCR_TXE = 1U << 8;
inline constexpr uint16_t kCR_RXE = 1U << 9;
inline constexpr uint16_t kCR_DTR = 1U << 10;
inline constexpr uint16_t kCR_RTS = 1U << 11;
inline constexpr uint16_t kCR_Out1 = 1U << 12;
inline constexpr uint16_t kCR_Out2 = 1U << 13;

// "Interrupt FIFO Level Select Register, UARTIFLS"
inline constexpr unsigned kIFLS_RXIFLSEL_High = 5;
inline constexpr unsigned kIFLS_RXIFLSEL_Low = 3;

// "Raw Interrupt Status Register, UARTRIS"; the same places in UARTIMSC, UARTMIS and UARTICR.
inline constexpr uint16_t kInt_RX = 1U << 4;
inline constexpr uint16_t kInt_TX = 1U << 5;
inline constexpr uint16_t kInt_RT = 1U << 6;
inline constexpr uint16_t kInt_OE = 1U << 10;

// Reset values other than zero.
inline constexpr uint16_t kUARTCR_Reset = kCR_RXE | kCR_TXE;
inline constexpr uint16_t kUARTIFLS_Reset = 0x12;  // both FIFOs: half full

/// r1p5: the revision whose FIFOs hold 32 characters.
inline constexpr PrimeCellId kId{.part_number = 0x011, .revision = 3};
inline constexpr unsigned kFifoDepth = 32;

}  // namespace tandem::devices::pl011
