// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::devices {

/// Answers a driver's read of configuration space: `out` is what `config` holds from `offset` on, zeros beyond its end.
inline void copy_config(std::span<const std::byte> config, uint64_t offset, std::span<std::byte> out) {
  const auto rest = config.subspan(std::min<uint64_t>(offset, config.size()));
  const auto known = rest.first(std::min(rest.size(), out.size()));
  const auto end = std::ranges::copy(known, out.begin()).out;
  std::fill(end, out.end(), std::byte{0});
}

}  // namespace tandem::devices
