// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/kvm_dirty_log.hpp"

#include <algorithm>

#include "vmm/kvm/kvm_uapi.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"

namespace tandem {
namespace {

/// What KVM protects at a time, with its lock held: 64 MiB of 4 KiB pages.
constexpr size_t kChunkPages = 16384;
constexpr size_t kWordBits = 64;
constexpr uint64_t kManualProtect = KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE;

}  // namespace

Result<std::unique_ptr<KvmDirtyLog>> KvmDirtyLog::create(KvmVm& vm, GuestRange ram) {
  const auto offered = static_cast<uint64_t>(vm.kvm().capability(KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2));
  const bool protects_by_hand = (offered & kManualProtect) != 0;
  if (protects_by_hand) {
    // Without KVM_DIRTY_LOG_INITIALLY_SET: its start protects nothing, but all would have to be protected right afterwards, bit
    // by bit. The other start passes over what the guest has not touched yet: after a restore, that is all of RAM.
    kvm_enable_cap request{};
    request.cap = KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2;
    request.args[0] = kManualProtect;
    TANDEM_TRY(kvm_ioctl(vm.fd(), KVM_ENABLE_CAP, "KVM_ENABLE_CAP(KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2)", &request));
  }
  return std::unique_ptr<KvmDirtyLog>(
      new KvmDirtyLog(vm, vm.slot_of(ram), ram.size() / host_page_size(), protects_by_hand));
}

Result<void> KvmDirtyLog::start() { return vm_.set_write_logging(slot_, KvmVm::WriteLogging::kOn); }

Result<void> KvmDirtyLog::stop() { return vm_.set_write_logging(slot_, KvmVm::WriteLogging::kOff); }

Result<void> KvmDirtyLog::collect(DirtyBitmap& into) {
  TANDEM_ASSERT(into.page_count() == page_count_, "the bitmap is one of this RAM");
  kvm_dirty_log request{};
  request.slot = slot_;
  request.dirty_bitmap = bits_.data();
  TANDEM_TRY(kvm_ioctl(vm_.fd(), KVM_GET_DIRTY_LOG, "KVM_GET_DIRTY_LOG", &request));
  into.mark_bits(0, bits_);
  return protects_by_hand_ ? protect() : Result<void>();
}

Result<void> KvmDirtyLog::protect() {
  for (size_t first = 0; first < page_count_; first += kChunkPages) {
    const size_t pages = std::min(kChunkPages, page_count_ - first);
    const std::span chunk = std::span(bits_).subspan(first / kWordBits, (pages + kWordBits - 1) / kWordBits);
    if (std::ranges::all_of(chunk, [](uint64_t word) { return word == 0; })) {
      continue;
    }
    kvm_clear_dirty_log request{};
    request.slot = slot_;
    request.first_page = first;
    request.num_pages = static_cast<uint32_t>(pages);
    request.dirty_bitmap = chunk.data();
    TANDEM_TRY(kvm_ioctl(vm_.fd(), KVM_CLEAR_DIRTY_LOG, "KVM_CLEAR_DIRTY_LOG", &request));
  }
  return {};
}

}  // namespace tandem
