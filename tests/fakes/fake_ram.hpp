// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"

namespace tandem {

/// Guest RAM over anonymous memory, with the guest's allocator.
class FakeRam {
 public:
  static constexpr GuestAddr kBase{0x4000'0000};

  explicit FakeRam(uint64_t size_bytes = 1U << 20);

  [[nodiscard]] const GuestMemory& memory() const { return memory_; }
  /// See GuestMemory::log_writes.
  void log_writes(DirtyBitmap* log) { memory_.log_writes(log); }
  [[nodiscard]] GuestRange range() const { return range_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }

  /// A fresh piece of RAM; fails the process when RAM is used up.
  GuestAddr allocate(uint64_t size_bytes, uint64_t alignment = 16);
  /// The last `size_bytes` of RAM; not known to `allocate`.
  [[nodiscard]] GuestAddr end_minus(uint64_t size_bytes) const;

  /// @pre the bytes are in RAM.
  [[nodiscard]] std::vector<std::byte> read(GuestAddr addr, size_t size_bytes) const;
  void write(GuestAddr addr, std::span<const std::byte> bytes) const;

 private:
  GuestRange range_;
  MappedRegion mapping_;
  GuestMemory memory_;
  uint64_t allocated_bytes_ = 0;
};

}  // namespace tandem
