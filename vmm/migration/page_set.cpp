// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/page_set.hpp"

#include <algorithm>
#include <bit>

#include "vmm/lib/result/result.hpp"

namespace tandem::migration {

PageSet::PageSet(uint64_t ram_bytes, uint64_t page_bytes)
    : ram_bytes_(ram_bytes), page_bytes_(page_bytes), bits_(bitmap_bytes(ram_bytes, page_bytes)) {
  TANDEM_ASSERT(std::has_single_bit(page_bytes) && ram_bytes % page_bytes == 0, "RAM consists of whole pages");
}

PageSet PageSet::from_bitmap(uint64_t ram_bytes, uint64_t page_bytes, std::span<const std::byte> bits) {
  PageSet set(ram_bytes, page_bytes);
  TANDEM_ASSERT(bits.size() == set.bits_.size(), "the caller cut the bitmap out by its length");
  std::ranges::copy(bits, set.bits_.begin());
  return set;
}

uint64_t PageSet::count() const {
  uint64_t count = 0;
  for (const std::byte bits : bits_) {
    count += static_cast<uint64_t>(std::popcount(std::to_integer<uint8_t>(bits)));
  }
  return count;
}

bool PageSet::has(uint64_t page) const { return (bits_[page / 8] >> (page % 8) & std::byte{1}) != std::byte{0}; }

void PageSet::add(uint64_t first, uint64_t count) {
  TANDEM_ASSERT(first + count <= ram_bytes_ / page_bytes_, "the caller's pages are pages of the RAM");
  for (uint64_t page = first; page < first + count; ++page) {
    bits_[page / 8] |= std::byte{1} << (page % 8);
  }
}

std::optional<PageSet::Run> PageSet::first_run(Run within) const {
  uint64_t page = within.offset / page_bytes_;
  const uint64_t end = page + within.size_bytes / page_bytes_;
  while (page < end && !has(page)) {
    page += page % 8 == 0 && bits_[page / 8] == std::byte{0} ? 8 : 1;
  }
  const uint64_t first = page;
  while (page < end && has(page)) {
    ++page;
  }
  if (first >= end) {
    return std::nullopt;
  }
  return Run{.offset = first * page_bytes_, .size_bytes = (page - first) * page_bytes_};
}

}  // namespace tandem::migration
