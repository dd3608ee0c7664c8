// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/ram_write_log.hpp"

#include <algorithm>

namespace tandem {

RamWriteLog::RamWriteLog(GuestMemory& memory, GuestWriteLog& guest, GuestRange ram, size_t page_bytes)
    : memory_(memory),
      guest_(guest),
      ram_(ram),
      page_bytes_(page_bytes),
      host_writes_(ram, page_bytes),
      fresh_(ram, page_bytes) {}

Result<std::unique_ptr<RamWriteLog::Reader>> RamWriteLog::open() {
  const std::lock_guard lock(mutex_);
  if (readers_.empty()) {
    TANDEM_TRY(start());
  } else {
    TANDEM_TRY(collect());  // what was written before is not for the new reader
  }
  std::unique_ptr<Reader> reader(new Reader(*this));
  readers_.push_back(reader.get());
  return reader;
}

Result<void> RamWriteLog::start() {
  host_writes_.clear();
  fresh_.clear();
  TANDEM_TRY(guest_.start());
  memory_.log_writes(&host_writes_);
  return {};
}

Result<void> RamWriteLog::collect() {
  TANDEM_TRY(guest_.collect(fresh_));
  host_writes_.harvest(fresh_);
  for (Reader* const reader : readers_) {
    reader->pending_.merge(fresh_);
  }
  fresh_.clear();
  return {};
}

void RamWriteLog::close(const Reader& reader) {
  const std::lock_guard lock(mutex_);
  std::erase(readers_, &reader);
  if (readers_.empty()) {
    memory_.log_writes(nullptr);
    // A log that stays on costs the guest time, but no page: the next reader starts it anew.
    static_cast<void>(guest_.stop());
  }
}

RamWriteLog::Reader::~Reader() { log_.close(*this); }

Result<void> RamWriteLog::Reader::collect(DirtyBitmap& into) {
  const std::lock_guard lock(log_.mutex_);
  TANDEM_TRY(log_.collect());
  pending_.harvest(into);
  return {};
}

}  // namespace tandem
