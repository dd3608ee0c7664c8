// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Where random bytes come from.
class EntropySource {
 public:
  virtual ~EntropySource() = default;
  /// Fills all of `out` with random bytes.
  virtual Result<void> fill(std::span<std::byte> out) = 0;
};

}  // namespace tandem::devices
