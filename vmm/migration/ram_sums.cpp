// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/ram_sums.hpp"

#include <algorithm>

#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {

std::vector<std::byte> encode_ram_sums(const RamSums& sums) {
  std::vector<std::byte> content;
  if (sums.held) {
    content.assign(sums.held->bitmap().begin(), sums.held->bitmap().end());
  }
  for (const Checksum& checksum : sums.chunks) {
    const auto bytes = checksum.bytes();
    content.insert(content.end(), bytes.begin(), bytes.end());
  }
  return content;
}

uint64_t ram_sums_bytes(uint64_t ram_bytes, std::optional<uint64_t> page_bytes) {
  const uint64_t bitmap_bytes = page_bytes ? PageSet::bitmap_bytes(ram_bytes, *page_bytes) : 0;
  return bitmap_bytes + ram_bytes / kRamChunkBytes * Checksum::kBytes;
}

Result<RamSums> decode_ram_sums(std::span<const std::byte> content, uint64_t ram_bytes,
                                std::optional<uint64_t> page_bytes) {
  if (content.size() != ram_sums_bytes(ram_bytes, page_bytes)) {
    return fail(Errc::kCorrupt, "{} bytes where {} are due", content.size(), ram_sums_bytes(ram_bytes, page_bytes));
  }
  RamSums sums;
  if (page_bytes) {
    const uint64_t bitmap_bytes = PageSet::bitmap_bytes(ram_bytes, *page_bytes);
    sums.held = PageSet::from_bitmap(ram_bytes, *page_bytes, content.first(bitmap_bytes));
    content = content.subspan(bitmap_bytes);
    const uint64_t page_count = ram_bytes / *page_bytes;
    if (page_count % 8 != 0 && (sums.held->bitmap().back() >> (page_count % 8)) != std::byte{0}) {
      return fail(Errc::kCorrupt, "holds pages beyond the end of RAM");
    }
  }
  for (; !content.empty(); content = content.subspan(Checksum::kBytes)) {
    sums.chunks.push_back(Checksum::from_bytes(content.first<Checksum::kBytes>()));
  }
  return sums;
}

const Checksum& zero_chunk_checksum() {
  static const Checksum checksum = checksum_of(std::vector<std::byte>(kRamChunkBytes));
  return checksum;
}

}  // namespace tandem::migration
