// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/state/state_record.hpp"

namespace tandem::devices {

/// Saved form of a PL061, version 1.
struct GpioPl061StateV1 {
  static constexpr StateKind kKind{"gpio_pl061", 1};

  uint8_t inputs = 0;  ///< Levels from outside.
  uint8_t gpiodata = 0;
  uint8_t gpiodir = 0;
  uint8_t gpiois = 0;
  uint8_t gpioibe = 0;
  uint8_t gpioiev = 0;
  uint8_t gpioie = 0;
  uint8_t edges = 0;  ///< Edges seen and not cleared.
  uint8_t gpioafsel = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, inputs);
    archive(2, gpiodata);
    archive(3, gpiodir);
    archive(4, gpiois);
    archive(5, gpioibe);
    archive(6, gpioiev);
    archive(7, gpioie);
    archive(8, edges);
    archive(9, gpioafsel);
  }
};

}  // namespace tandem::devices
