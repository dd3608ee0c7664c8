// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/escape_keys.hpp"

namespace tandem::devices {

size_t EscapeKeys::take(std::span<std::byte> keys) {
  constexpr std::byte kCtrlA{0x01};
  size_t kept = 0;
  for (const std::byte key : keys) {
    if (!escaped_) {
      escaped_ = key == kCtrlA;
      if (!escaped_) {
        keys[kept++] = key;
      }
      continue;
    }
    escaped_ = false;
    switch (std::to_integer<char>(key)) {
      case 'x':
        actions_.quit();
        break;
      case 'h':
        actions_.show_keys();
        break;
      case 'a':
        keys[kept++] = kCtrlA;
        break;
      default:
        keys[kept++] = key;
        break;
    }
  }
  return kept;
}

}  // namespace tandem::devices
