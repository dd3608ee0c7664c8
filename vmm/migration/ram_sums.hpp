// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/migration/page_set.hpp"

namespace tandem::migration {

/// What the file `ram.sums` says about the file `ram`: the checksum of each chunk, and for a difference the pages it holds.
struct RamSums {
  std::optional<PageSet> held;   ///< Absent: all pages.
  std::vector<Checksum> chunks;  ///< Of `kRamChunkBytes` of the file each; pages that it does not hold are zeros there.
  bool operator==(const RamSums&) const = default;
};

/// The content of `ram.sums`.
std::vector<std::byte> encode_ram_sums(const RamSums& sums);

/// Length of `ram.sums`. @param page_bytes  of a difference.
uint64_t ram_sums_bytes(uint64_t ram_bytes, std::optional<uint64_t> page_bytes);

/// What `encode_ram_sums` made.
/// @pre     ram_bytes is a multiple of kRamChunkBytes; page_bytes, if given, is a power of two and divides it.
/// @errors  Errc::kCorrupt: another length, or pages beyond the end of RAM.
Result<RamSums> decode_ram_sums(std::span<const std::byte> content, uint64_t ram_bytes,
                                std::optional<uint64_t> page_bytes);

/// The checksum of a chunk of zeros.
const Checksum& zero_chunk_checksum();

}  // namespace tandem::migration
