// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "vmm/lib/guest_memory/dirty_bitmap.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem {

/// Which pages the guest has written, as the hypervisor knows them. @thread  one at a time; vCPUs may run.
class GuestWriteLog {
 public:
  virtual ~GuestWriteLog() = default;
  /// From now on the pages that the guest writes are logged; none is at first.
  virtual Result<void> start() = 0;
  /// Marks in `into` what was logged since `start` or the last call. @pre started.
  virtual Result<void> collect(DirtyBitmap& into) = 0;
  virtual Result<void> stop() = 0;
};

/// Which pages of RAM were written, by the guest or by the host, as each of several readers wants to know it: a snapshot
/// that later ones are to differ from, and a migration. Logging costs the guest time, so it is on while there is a reader.
/// @thread  any.
class RamWriteLog {
 public:
  /// What was written since this reader was made, or since it collected last. It may not outlive the log.
  class Reader {
   public:
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader();
    /// Marks in `into` the pages that were written. Their bytes are to be read after the call, and then no write is lost: it is
    /// in them, or comes with the next call.
    /// @pre  `into` has the shape of the log's RAM.
    Result<void> collect(DirtyBitmap& into);

   private:
    friend class RamWriteLog;
    explicit Reader(RamWriteLog& log) : log_(log), pending_(log.ram_, log.page_bytes_) {}
    RamWriteLog& log_;
    DirtyBitmap pending_;  // guarded by the log's mutex
  };

  /// @pre  both outlive the log, and the log whatever writes to `memory`; `ram` is what `guest` logs.
  RamWriteLog(GuestMemory& memory, GuestWriteLog& guest, GuestRange ram, size_t page_bytes);
  RamWriteLog(const RamWriteLog&) = delete;
  RamWriteLog& operator=(const RamWriteLog&) = delete;
  ~RamWriteLog() = default;

  /// A reader for what is written from now on; the first one turns logging on.
  Result<std::unique_ptr<Reader>> open();
  /// A bitmap of the log's shape, for `Reader::collect`.
  [[nodiscard]] DirtyBitmap make_bitmap() const { return {ram_, page_bytes_}; }

 private:
  Result<void> start();
  /// Passes on to all readers what was logged.
  Result<void> collect();
  void close(const Reader& reader);

  GuestMemory& memory_;
  GuestWriteLog& guest_;
  const GuestRange ram_;
  const size_t page_bytes_;
  DirtyBitmap host_writes_;  // marked by whoever writes to memory_

  std::mutex mutex_;  // guards what follows, guest_, and what readers have pending
  DirtyBitmap fresh_;
  std::vector<Reader*> readers_;
};

}  // namespace tandem
