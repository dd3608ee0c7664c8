// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "vmm/lib/guest_memory/dirty_bitmap.hpp"
#include "vmm/migration/chunk.hpp"
#include "vmm/migration/migration_stream.hpp"

namespace tandem::migration {

/// Sends rounds of pages of RAM.
class RamSender {
 public:
  /// Is asked between pieces of a round, with the bytes of RAM that the round has sent. @errors  end the round.
  using Between = std::function<Result<void>(uint64_t copied_bytes)>;

  /// @pre `stream` and `ram` outlive it.
  RamSender(MigrationStream& stream, std::span<const std::byte> ram, ChunkEncoder::Compress compress)
      : stream_(stream), ram_(ram), encoder_(compress) {}

  /// Sends the pages that are marked, unmarks them, and waits until the receiver has them in RAM.
  Result<void> send_round(DirtyBitmap& pages, const Between& between);

  [[nodiscard]] uint32_t rounds() const { return rounds_; }
  /// Bytes of RAM in all rounds.
  [[nodiscard]] uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  Result<void> send_run(uint64_t offset, uint64_t size_bytes);
  Result<void> send_chunk(const Chunk& chunk);

  MigrationStream& stream_;
  std::span<const std::byte> ram_;
  ChunkEncoder encoder_;
  uint32_t rounds_ = 0;
  uint64_t copied_bytes_ = 0;
  uint64_t chunk_count_ = 0;  // of the round
};

}  // namespace tandem::migration
