// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "vmm/lib/regular_file/regular_file.hpp"
#include "vmm/lib/result/result.hpp"

/// Decompression of a part of a file, in pieces: neither side is ever in memory as a whole.
namespace tandem::boot {

/// A run of bytes of a file.
struct FilePart {
  const RegularFile& file;
  uint64_t offset;
  uint64_t size_bytes;
};

/// Takes decompressed bytes in order; all pieces but the last are `kOutputPieceBytes` long. Its error ends the work.
using ByteSink = std::function<Result<void>(std::span<const std::byte>)>;

inline constexpr size_t kOutputPieceBytes = 256U << 10;

/// Decompresses gzip members, as gzip(1) does: members that follow one another are one stream; what follows the last of
/// them and is no member is ignored.
/// @errors  Errc::kCorrupt: no gzip, cut off, or a checksum is wrong; and those of `sink`.
Result<void> decompress_gzip(const FilePart& part, const ByteSink& sink);

/// Decompresses zstd frames; as for gzip, what follows the last frame is ignored.
/// @errors  Errc::kCorrupt: no zstd, cut off, a window of more than 128 MiB, or a checksum is wrong; and those of `sink`.
Result<void> decompress_zstd(const FilePart& part, const ByteSink& sink);

}  // namespace tandem::boot
