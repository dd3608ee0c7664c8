// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a PL011, version 1.
struct UartPl011StateV1 {
  static constexpr StateKind kKind{"uart_pl011", 1};

  uint8_t uartrsr = 0;
  uint16_t uartilpr = 0;
  uint16_t uartibrd = 0;
  uint16_t uartfbrd = 0;
  uint16_t uartlcr_h = 0;
  uint16_t uartcr = 0;
  uint16_t uartifls = 0;
  uint16_t uartimsc = 0;
  uint16_t uartris = 0;
  uint16_t uartdmacr = 0;
  std::vector<uint8_t> receive_fifo;  ///< Oldest first.

  template <typename A>
  void fields(A& archive) {
    archive(1, uartrsr);
    archive(2, uartilpr);
    archive(3, uartibrd);
    archive(4, uartfbrd);
    archive(5, uartlcr_h);
    archive(6, uartcr);
    archive(7, uartifls);
    archive(8, uartimsc);
    archive(9, uartris);
    archive(10, uartdmacr);
    archive(11, receive_fifo);
  }
};

}  // namespace tandem::devices
