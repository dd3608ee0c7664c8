// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "vmm/lib/cache_clean/cache_clean.hpp"

namespace tandem {
namespace {

/// The smallest data cache line of all caches [bytes]. (DDI 0487, "CTR_EL0.DminLine": log2 of its 4-byte words)
uintptr_t data_line_bytes() {
  uint64_t ctr = 0;
  asm("mrs %0, ctr_el0" : "=r"(ctr));
  constexpr unsigned kDminLineShift = 16;
  return uintptr_t{4} << ((ctr >> kDminLineShift) & 0xf);
}

}  // namespace

void clean_to_coherency(std::span<const std::byte> bytes) {
  const uintptr_t line_bytes = data_line_bytes();
  const auto start = reinterpret_cast<uintptr_t>(bytes.data());
  for (uintptr_t line = start & ~(line_bytes - 1); line < start + bytes.size(); line += line_bytes) {
    asm volatile("dc cvac, %0" ::"r"(line) : "memory");
  }
  asm volatile("dsb sy" ::: "memory");
}

}  // namespace tandem
