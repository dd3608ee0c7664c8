// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/mapped_region/mapped_region.hpp"

#include <unistd.h>

#include <cstdint>

namespace tandem {

Result<MappedRegion> MappedRegion::map(size_t size_bytes, int protection, int flags, int fd, off_t offset) {
  void* const addr = ::mmap(nullptr, size_bytes, protection, flags, fd, offset);
  if (addr == MAP_FAILED) {
    return fail_errno("mmap of {} bytes", size_bytes);
  }
  return MappedRegion(std::span(static_cast<std::byte*>(addr), size_bytes));
}

Result<MappedRegion> MappedRegion::map_aligned(size_t size_bytes, size_t alignment, int protection, int flags, int fd) {
  if (size_bytes > SIZE_MAX - alignment) {
    return fail(Errc::kOutOfMemory, "mmap of {} bytes: more than the address space", size_bytes);
  }
  MappedRegion reserved =
      TANDEM_TRY(map(size_bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE));
  std::byte* const base = reserved.bytes_.data();
  const size_t lead = (alignment - reinterpret_cast<uintptr_t>(base) % alignment) % alignment;
  if (::mmap(base + lead, size_bytes, protection, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
    return fail_errno("mmap of {} bytes", size_bytes);
  }
  // The reservation's edges go; its middle has become the mapping.
  if (lead != 0) {
    ::munmap(base, lead);
  }
  if (alignment != lead) {
    ::munmap(base + lead + size_bytes, alignment - lead);
  }
  reserved.bytes_ = std::span(base + lead, size_bytes);
  return reserved;
}

void MappedRegion::unmap() {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data(), bytes_.size());
  }
}

size_t host_page_size() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace tandem
