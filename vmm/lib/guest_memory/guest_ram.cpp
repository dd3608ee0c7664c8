// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/guest_ram.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/lib/bits/bits.hpp"

namespace tandem {
namespace {

constexpr size_t kHugePage = 2U << 20;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

}  // namespace

Result<GuestRam> GuestRam::create_anonymous(GuestRange range) {
  MappedRegion mapping =
      TANDEM_TRY(MappedRegion::map_aligned(range.size(), kHugePage, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS));
  ::madvise(mapping.bytes().data(), mapping.size(),
            MADV_HUGEPAGE);  // advice: a host without THP says no, and that is fine
  return GuestRam(range, std::move(mapping), UniqueFd(), Backing::kAnonymous);
}

Result<GuestRam> GuestRam::create_private_file(GuestRange range, UniqueFd file) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) {
    return fail_errno("fstat of the RAM file");
  }
  if (static_cast<uint64_t>(status.st_size) < range.size()) {
    return fail(Errc::kOutOfRange, "the RAM file has {} bytes, the guest's RAM {}", status.st_size, range.size());
  }
  MappedRegion mapping = TANDEM_TRY(
      MappedRegion::map_aligned(range.size(), kHugePage, kReadWrite, MAP_PRIVATE | MAP_NORESERVE, file.get()));
  return GuestRam(range, std::move(mapping), std::move(file), Backing::kPrivateFile);
}

Result<GuestRam> GuestRam::create_shared(GuestRange range) {
  UniqueFd file(::memfd_create("tandem-ram", MFD_CLOEXEC));
  if (!file) {
    return fail_errno("memfd_create");
  }
  if (::ftruncate(file.get(), static_cast<off_t>(range.size())) != 0) {
    return fail_errno("ftruncate of the guest's RAM to {} bytes", range.size());
  }
  MappedRegion mapping =
      TANDEM_TRY(MappedRegion::map_aligned(range.size(), kHugePage, kReadWrite, MAP_SHARED, file.get()));
  return GuestRam(range, std::move(mapping), std::move(file), Backing::kShared);
}

bool GuestRam::is_cut_off() const {
  struct stat status{};
  return backing_ == Backing::kPrivateFile && ::fstat(file_.get(), &status) == 0 &&
         static_cast<uint64_t>(status.st_size) < range_.size();
}

Result<void> GuestRam::discard(GuestRange range) {
  TANDEM_ASSERT(range_.contains(range), "the caller checked the range against RAM");
  const uint64_t page = host_page_size();
  const uint64_t first = align_up(range_.offset_of(range.base()), page);
  const uint64_t end = align_down(range_.offset_of(range.last()) + 1, page);
  if (first >= end) {
    return {};
  }
  std::byte* const start = mapping_.bytes().data() + first;
  const size_t size_bytes = end - first;
  switch (backing_) {
    case Backing::kAnonymous:
      if (::madvise(start, size_bytes, MADV_DONTNEED) != 0) {
        return fail_errno("madvise(MADV_DONTNEED)");
      }
      return {};
    case Backing::kPrivateFile: {
      // MADV_DONTNEED would bring the file's content back, so anonymous memory takes the place.
      constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
      if (::mmap(start, size_bytes, kReadWrite, kFlags, -1, 0) == MAP_FAILED) {
        return fail_errno("mmap over discarded RAM");
      }
      return {};
    }
    case Backing::kShared:
      if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                      static_cast<off_t>(size_bytes)) != 0) {
        return fail_errno("fallocate(FALLOC_FL_PUNCH_HOLE)");
      }
      return {};
  }
  TANDEM_UNREACHABLE("every backing returns above");
}

}  // namespace tandem
