// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "devices/backend/disk_file.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// One operation on a disk: what to do, how far it has come, how it ended. It and the memory it points to stay where
/// they are until the engine gives it back.
class BlockRequest {
 public:
  enum class Kind : uint8_t { kRead, kWrite, kFlush, kDiscard, kWriteZeroes };
  struct Range {
    uint64_t offset;
    uint64_t size_bytes;
    DiskFile::Unmap unmap;  ///< Of kWriteZeroes.
  };

  Kind kind = Kind::kRead;
  uint64_t offset = 0;         ///< Of kRead and kWrite: where on the disk [bytes].
  std::vector<iovec> buffers;  ///< Of kRead and kWrite: memory, none empty, at most IOV_MAX; changed on the way.
  std::vector<Range> ranges;   ///< Of kDiscard and kWriteZeroes.
  bool durable = false;        ///< Of those that write: on stable storage when it ends.
  // Outcome
  uint64_t done_bytes = 0;  ///< Of kRead and kWrite: transferred, from the start.
  int os_error = 0;         ///< 0 when all was done.

  /// Ready for other use; keeps the memory of its lists.
  void clear();

  // For engines:
  /// Memory that is still to be transferred.
  [[nodiscard]] std::span<const iovec> remaining() const { return std::span(buffers).subspan(first_buffer_); }
  /// Takes the outcome of one transfer. @param result  bytes transferred, or a negated errno.
  /// @return whether the request has ended; else the rest is to be transferred.
  bool advance(int64_t result);

 private:
  size_t first_buffer_ = 0;
};

/// Performs requests on one disk without blocking. Requests run in any order and at the same time.
/// @thread  one at a time.
class BlockEngine {
 public:
  BlockEngine() = default;
  BlockEngine(const BlockEngine&) = delete;
  BlockEngine& operator=(const BlockEngine&) = delete;
  /// @pre nothing is in flight.
  virtual ~BlockEngine() = default;

  [[nodiscard]] virtual const DiskFile& disk() const = 0;
  /// In a word, for people.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Takes on a request; it may start now or at `kick`. @pre within the disk; its kind is allowed there.
  virtual void submit(BlockRequest& request) = 0;
  /// Starts what was submitted.
  virtual void kick() = 0;

  /// Readable when `reap` would find something.
  [[nodiscard]] virtual int completion_fd() const = 0;
  /// Appends the requests that ended to `ended`.
  virtual void reap(std::vector<BlockRequest*>& ended) = 0;
};

/// Waits until `engine.completion_fd()` is readable. @pre something is in flight, and was kicked.
void wait_for_completion(const BlockEngine& engine);

enum class BlockEngineKind : uint8_t {
  kAuto,    ///< io_uring where the host allows it.
  kUring,   ///< io_uring.
  kWorker,  ///< One thread.
};

/// The engine for `disk`.
/// @param max_requests  bound of the requests in flight.
/// @errors  kUring: Errc::kUnsupported or kPermission: the host has no io_uring.
Result<std::unique_ptr<BlockEngine>> create_block_engine(DiskFile disk, unsigned max_requests,
                                                         BlockEngineKind kind = BlockEngineKind::kAuto);

}  // namespace tandem::devices
