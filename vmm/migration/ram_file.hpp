// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/lib/progress/progress.hpp"
#include "vmm/lib/regular_file/regular_file.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/migration/ram_sums.hpp"
#include "vmm/migration/snapshot_format.hpp"

/// The file `ram` of a snapshot: the bytes of RAM, zeros as holes, and behind them a mark of what they belong to.
namespace tandem::migration {

/// Writes all of `ram`, or only the pages in `held`, to the new file `fd`.
/// @pre     ram.size() is a multiple of kRamChunkBytes; nobody writes to `ram` meanwhile.
/// @return  what `ram.sums` has to say of it.
Result<RamSums> write_ram_file(int fd, std::span<const std::byte> ram, const PageSet* held, ProgressSink& progress);

/// Marks the file as the one that belongs to a `ram.sums` with that checksum.
Result<void> write_ram_mark(int fd, uint64_t ram_bytes, const Checksum& sums_checksum);

/// The file, for reading.
class RamFile {
 public:
  /// Checks length and mark.
  /// @param sums_checksum  that of `ram.sums`.
  /// @errors  Errc::kCorrupt: another length, or the RAM of another snapshot.
  static Result<RamFile> create(RegularFile file, RamSums sums, const Checksum& sums_checksum);

  [[nodiscard]] const RamSums& sums() const { return sums_; }
  [[nodiscard]] uint64_t ram_bytes() const { return sums_.chunks.size() * kRamChunkBytes; }
  [[nodiscard]] const RegularFile& file() const { return file_; }

  enum class Chunk : uint8_t { kZeros, kRead };
  /// Reads chunk `index` and checks it.
  /// @param out  as long as a chunk; unspecified if the chunk is all zeros.
  /// @errors  Errc::kCorrupt: it does not have its checksum.
  Result<Chunk> read_chunk(size_t index, std::span<std::byte> out) const;

  /// Reads some bytes without a check. @pre they are in the RAM.
  Result<void> read(uint64_t offset, std::span<std::byte> out) const;

 private:
  RamFile(RegularFile file, RamSums sums) : file_(std::move(file)), sums_(std::move(sums)) {}
  [[nodiscard]] bool is_hole(uint64_t offset, uint64_t size_bytes) const;

  RegularFile file_;
  RamSums sums_;
};

}  // namespace tandem::migration
