// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vmm/lib/result/result.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tandem::migration {

/// How the contents of a chunk are written; the numbers are part of the protocol.
enum class ChunkEncoding : uint32_t { kRaw = 0, kZero = 1, kZstd = 2 };

/// A piece of RAM on its way: where it belongs, and its bytes in one of the encodings.
struct Chunk {
  static constexpr size_t kHeaderBytes = 24;
  uint64_t offset = 0;  ///< From the start of RAM.
  uint64_t size_bytes = 0;
  ChunkEncoding encoding = ChunkEncoding::kRaw;
  std::span<const std::byte> contents;

  [[nodiscard]] std::array<std::byte, kHeaderBytes> header() const;
  /// @errors  Errc::kCorrupt: too short, or not of any encoding.
  static Result<Chunk> decode(std::span<const std::byte> payload);
};

/// Whether all of `bytes` are zero.
bool is_zero(std::span<const std::byte> bytes);

/// Makes chunks of pieces of RAM.
class ChunkEncoder {
 public:
  enum class Compress : uint8_t { kNo, kZstd };
  explicit ChunkEncoder(Compress compress);

  /// The chunk for the bytes at `offset`, that the guest may write to meanwhile; valid until the next call.
  /// @pre bytes.size() <= kMaxChunkBytes.
  Chunk encode(uint64_t offset, std::span<const std::byte> bytes);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<std::byte> copy_;
  std::vector<std::byte> compressed_;
};

/// Puts the chunks of one machine into its RAM.
class ChunkPlacer {
 public:
  /// @pre `ram` is zero.
  explicit ChunkPlacer(std::span<std::byte> ram);

  /// The chunks that follow are of another round.
  void begin_round();
  /// @errors  Errc::kCorrupt: not wholly inside RAM, not behind the one before in its round, or its contents are not as
  ///          long as it says.
  Result<void> place(const Chunk& chunk);

 private:
  [[nodiscard]] Result<void> check(const Chunk& chunk) const;
  Result<void> decompress(std::span<const std::byte> contents, std::span<std::byte> place);

  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::span<std::byte> ram_;
  uint64_t next_ = 0;  // where the next chunk of the round may be
  bool first_round_ = true;
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace tandem::migration
