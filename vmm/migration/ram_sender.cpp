// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/ram_sender.hpp"

#include <algorithm>

namespace tandem::migration {
namespace {

/// Most RAM between two looks at whether to go on.
constexpr uint64_t kPieceBytes = 4U << 20;

}  // namespace

Result<void> RamSender::send_round(DirtyBitmap& pages, const Between& between) {
  ++rounds_;
  chunk_count_ = 0;
  const uint64_t copied_before = copied_bytes_;
  const size_t most_pages = std::max<size_t>(1, kPieceBytes / pages.page_bytes());
  TANDEM_TRY(stream_.send(RoundBegin{rounds_}));
  size_t page = 0;
  while (const auto run = pages.next_run(page, most_pages)) {
    TANDEM_TRY(between(copied_bytes_ - copied_before));
    TANDEM_TRY(stream_.check_peer());
    TANDEM_TRY(send_run(run->first * pages.page_bytes(), run->count * pages.page_bytes()));
    copied_bytes_ += run->count * pages.page_bytes();
    pages.clear(*run);
    page = run->first + run->count;
  }
  TANDEM_TRY(stream_.send(RoundEnd{chunk_count_}));
  const auto done = TANDEM_TRY(stream_.expect<RoundDone>());
  if (done.number != rounds_) {
    return fail(Errc::kCorrupt, "the receiver speaks of round {}, not {}", done.number, rounds_);
  }
  return {};
}

Result<void> RamSender::send_run(uint64_t offset, uint64_t size_bytes) {
  const uint64_t end = offset + size_bytes;
  while (offset < end) {
    const auto unit_is_zero = [this](uint64_t at) { return is_zero(ram_.subspan(at, kChunkUnitBytes)); };
    const bool zero = unit_is_zero(offset);
    const uint64_t most = zero ? end : std::min(end, offset + kMaxChunkBytes);
    uint64_t next = offset + kChunkUnitBytes;
    while (next < most && unit_is_zero(next) == zero) {
      next += kChunkUnitBytes;
    }
    // Should the guest fill them now, the pages come again in the next round.
    TANDEM_TRY(send_chunk(
        zero ? Chunk{.offset = offset, .size_bytes = next - offset, .encoding = ChunkEncoding::kZero, .contents = {}}
             : encoder_.encode(offset, ram_.subspan(offset, next - offset))));
    offset = next;
  }
  return {};
}

Result<void> RamSender::send_chunk(const Chunk& chunk) {
  ++chunk_count_;
  return stream_.gather(MessageType::kChunk, chunk.header(), chunk.contents);
}

}  // namespace tandem::migration
