// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/lib/guest_memory/ram_write_log.hpp"

namespace tandem {

/// KVM's dirty log of one memory slot: what vCPUs write, and KVM itself (ITS tables, pending LPIs), but nothing that the host's
/// processes write. Pages are protected again in chunks, so that vCPUs do not wait for all of RAM.
class KvmDirtyLog final : public GuestWriteLog {
 public:
  /// The log of the slot that `ram` is.
  /// @pre  `vm` outlives it, and has had `ram` added.
  static Result<std::unique_ptr<KvmDirtyLog>> create(KvmVm& vm, GuestRange ram);

  Result<void> start() override;
  Result<void> collect(DirtyBitmap& into) override;
  Result<void> stop() override;

 private:
  KvmDirtyLog(KvmVm& vm, uint32_t slot, size_t page_count, bool protects_by_hand)
      : vm_(vm),
        slot_(slot),
        page_count_(page_count),
        protects_by_hand_(protects_by_hand),
        bits_((page_count + 63) / 64) {}
  /// Protects the pages in `bits_` again.
  Result<void> protect();

  KvmVm& vm_;
  uint32_t slot_;
  size_t page_count_;
  bool protects_by_hand_;       ///< Else the kernel protects pages as it reads the log.
  std::vector<uint64_t> bits_;  ///< One for each page.
};

}  // namespace tandem
