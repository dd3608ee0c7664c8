// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "devices/bus/mmio_handler.hpp"
#include "tests/fuzz/input_reader.hpp"

namespace tandem::fuzz {

/// Makes accesses of the input's choice to a handler's window, as MmioBus would: whole within the window, no value
/// wider than the access. Between accesses `between` gets a byte of the input.
template <typename Between>
void run_mmio_sequence(devices::MmioHandler& handler, uint64_t window_bytes, InputReader& input, Between between) {
  while (!input.is_empty()) {
    const auto what = input.take<uint8_t>();
    const unsigned width_bytes = 1U << (what & 3U);
    const uint64_t offset = input.take<uint16_t>() % (window_bytes - width_bytes + 1);
    if ((what & 4U) != 0) {
      const uint64_t value = input.take<uint64_t>();
      (void)handler.write({offset, width_bytes}, width_bytes == 8 ? value : value & ((1ULL << width_bytes * 8) - 1));
    } else {
      (void)handler.read({offset, width_bytes});
    }
    if ((what & 8U) != 0) {
      between(input.take<uint8_t>());
    }
  }
}

}  // namespace tandem::fuzz
