// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/chunk.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/migration/migration_message.hpp"

namespace tandem::migration {
namespace {

constexpr int kZstdLevel = 1;

constexpr size_t kSizeOffset = 8;
constexpr size_t kEncodingOffset = 16;
constexpr size_t kReservedOffset = 20;

}  // namespace

std::array<std::byte, Chunk::kHeaderBytes> Chunk::header() const {
  std::array<std::byte, kHeaderBytes> bytes{};
  const std::span all(bytes);
  store_le(all, offset);
  store_le(all.subspan(kSizeOffset), size_bytes);
  store_le(all.subspan(kEncodingOffset), static_cast<uint32_t>(encoding));
  return bytes;
}

Result<Chunk> Chunk::decode(std::span<const std::byte> payload) {
  if (payload.size() < kHeaderBytes || load_le<uint32_t>(payload.subspan(kReservedOffset)) != 0) {
    return fail(Errc::kCorrupt, "chunk: broken header");
  }
  const auto encoding = load_le<uint32_t>(payload.subspan(kEncodingOffset));
  if (encoding > static_cast<uint32_t>(ChunkEncoding::kZstd)) {
    return fail(Errc::kCorrupt, "chunk: unknown encoding {}", encoding);
  }
  return Chunk{.offset = load_le<uint64_t>(payload),
               .size_bytes = load_le<uint64_t>(payload.subspan(kSizeOffset)),
               .encoding = static_cast<ChunkEncoding>(encoding),
               .contents = payload.subspan(kHeaderBytes)};
}

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes.front() == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

ChunkEncoder::ChunkEncoder(Compress compress) : context_(compress == Compress::kZstd ? ZSTD_createCCtx() : nullptr) {
  copy_.reserve(kMaxChunkBytes);
  compressed_.resize(context_ ? ZSTD_compressBound(kMaxChunkBytes) : 0);
}

Chunk ChunkEncoder::encode(uint64_t offset, std::span<const std::byte> bytes) {
  copy_.assign(bytes.begin(), bytes.end());  // the guest may change them between two looks
  Chunk chunk{.offset = offset, .size_bytes = copy_.size(), .encoding = ChunkEncoding::kRaw, .contents = copy_};
  if (is_zero(copy_)) {
    chunk.encoding = ChunkEncoding::kZero;
    chunk.contents = {};
  } else if (context_) {
    const size_t size = ZSTD_compressCCtx(context_.get(), compressed_.data(), compressed_.size(), copy_.data(),
                                          copy_.size(), kZstdLevel);
    if (ZSTD_isError(size) == 0 && size < copy_.size()) {
      chunk.encoding = ChunkEncoding::kZstd;
      chunk.contents = std::span(compressed_).first(size);
    }
  }
  return chunk;
}

void ChunkEncoder::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ChunkPlacer::ChunkPlacer(std::span<std::byte> ram) : ram_(ram), context_(ZSTD_createDCtx()) {}

void ChunkPlacer::begin_round() {
  first_round_ = first_round_ && next_ == 0;
  next_ = 0;
}

Result<void> ChunkPlacer::check(const Chunk& chunk) const {
  const bool whole_units = is_aligned(chunk.offset | chunk.size_bytes, kChunkUnitBytes) && chunk.size_bytes != 0;
  if (!whole_units || chunk.offset > ram_.size() || chunk.size_bytes > ram_.size() - chunk.offset) {
    return fail(Errc::kCorrupt, "chunk: {:#x} bytes at {:#x} are not in RAM", chunk.size_bytes, chunk.offset);
  }
  if (chunk.offset < next_) {
    return fail(Errc::kCorrupt, "chunk: {:#x} comes twice, or out of order", chunk.offset);
  }
  const bool fits = chunk.encoding == ChunkEncoding::kZero  ? chunk.contents.empty()
                    : chunk.encoding == ChunkEncoding::kRaw ? chunk.contents.size() == chunk.size_bytes
                                                            : chunk.contents.size() < chunk.size_bytes;
  if (!fits || (chunk.encoding != ChunkEncoding::kZero && chunk.size_bytes > kMaxChunkBytes)) {
    return fail(Errc::kCorrupt, "chunk: {} bytes for {:#x} bytes of RAM", chunk.contents.size(), chunk.size_bytes);
  }
  return {};
}

Result<void> ChunkPlacer::place(const Chunk& chunk) {
  TANDEM_TRY(check(chunk));
  const std::span<std::byte> place = ram_.subspan(chunk.offset, chunk.size_bytes);
  next_ = chunk.offset + chunk.size_bytes;
  switch (chunk.encoding) {
    case ChunkEncoding::kRaw:
      copy_bytes(chunk.contents, place);
      return {};
    case ChunkEncoding::kZero:
      if (!first_round_ && !is_zero(place)) {  // a page that was never touched costs no memory
        zero_bytes(place);
      }
      return {};
    case ChunkEncoding::kZstd:
      return decompress(chunk.contents, place);
  }
  TANDEM_UNREACHABLE("decode knows all encodings");
}

Result<void> ChunkPlacer::decompress(std::span<const std::byte> contents, std::span<std::byte> place) {
  const size_t size = ZSTD_decompressDCtx(context_.get(), place.data(), place.size(), contents.data(), contents.size());
  if (ZSTD_isError(size) != 0 || size != place.size()) {
    return fail(Errc::kCorrupt, "chunk: broken compression");
  }
  return {};
}

void ChunkPlacer::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

}  // namespace tandem::migration
