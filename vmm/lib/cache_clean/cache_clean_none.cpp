// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/cache_clean/cache_clean.hpp"

namespace tandem {

void clean_to_coherency(std::span<const std::byte> /*bytes*/) {}

}  // namespace tandem
