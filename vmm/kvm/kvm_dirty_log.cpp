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
constexpr uint64_t kInitiallySet = KVM_DIRTY_LOG_INITIALLY_SET;

}  // namespace

Result<std::unique_ptr<KvmDirtyLog>> KvmDirtyLog::create(KvmVm& vm, GuestRange ram) {
  const auto offered = static_cast<uint64_t>(vm.kvm().capability(KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2));
  const uint64_t flags = offered & (kManualProtect | kInitiallySet);
  if (flags != 0) {
    kvm_enable_cap request{};
    request.cap = KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2;
    request.args[0] = flags;
    TANDEM_TRY(kvm_ioctl(vm.fd(), KVM_ENABLE_CAP, "KVM_ENABLE_CAP(KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2)", &request));
  }
  return std::unique_ptr<KvmDirtyLog>(new KvmDirtyLog(vm, vm.slot_of(ram), ram.size() / host_page_size(), flags));
}

Result<void> KvmDirtyLog::start() {
  TANDEM_TRY(vm_.set_write_logging(slot_, KvmVm::WriteLogging::kOn));
  if ((protect_flags_ & kInitiallySet) != 0) {
    // KVM has taken every page for written, and protected none.
    std::ranges::fill(bits_, ~uint64_t{0});
    return protect();
  }
  return {};
}

Result<void> KvmDirtyLog::stop() { return vm_.set_write_logging(slot_, KvmVm::WriteLogging::kOff); }

Result<void> KvmDirtyLog::collect(DirtyBitmap& into) {
  TANDEM_ASSERT(into.page_count() == page_count_, "the bitmap is one of this RAM");
  kvm_dirty_log request{};
  request.slot = slot_;
  request.dirty_bitmap = bits_.data();
  TANDEM_TRY(kvm_ioctl(vm_.fd(), KVM_GET_DIRTY_LOG, "KVM_GET_DIRTY_LOG", &request));
  into.mark_bits(0, bits_);
  return protect_flags_ != 0 ? protect() : Result<void>();
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
