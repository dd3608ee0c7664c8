// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/sealed_image/sealed_image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"

#ifndef MADV_COLLAPSE  // Linux 6.1
#define MADV_COLLAPSE 25
#endif
#ifndef MFD_NOEXEC_SEAL  // Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace tandem {
namespace {

constexpr uint64_t kHugePageBytes = 2U << 20;

/// Makes the first `size_bytes` bytes of the memfd huge pages. All of it is advice: what fails costs time, no more.
/// @pre  size_bytes is a multiple of kHugePageBytes.
void collapse(int fd, uint64_t size_bytes) {
  for (uint64_t offset = 0; offset < size_bytes; offset += kHugePageBytes) {
    if (::pwrite(fd, "", 1, static_cast<off_t>(offset)) != 1) {  // what is nothing but a hole stays one
      return;
    }
  }
  const auto mapping = MappedRegion::map_aligned(size_bytes, kHugePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  if (mapping) {
    ::madvise(mapping->bytes().data(), mapping->size(), MADV_COLLAPSE);
  }
}

}  // namespace

Result<void> SealedImage::copy_to(std::span<std::byte> out, uint64_t offset) const {
  TANDEM_ASSERT(offset <= size_bytes_ && out.size() <= size_bytes_ - offset, "callers ask for no more than there is");
  if (out.empty()) {
    return {};
  }
  const MappedRegion image = TANDEM_TRY(map());
  copy_bytes(image.bytes().subspan(offset, out.size()), out);
  return {};
}

Result<SealedImageWriter> SealedImageWriter::create(const char* name) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) {  // before 6.3
    fd.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!fd) {
    return fail_errno("memfd_create");
  }
  return SealedImageWriter(std::move(fd));
}

void SealedImageWriter::expect(uint64_t size_bytes) {
  TANDEM_ASSERT(size_bytes_ == 0, "what was appended would be written over");
  const uint64_t huge_bytes = align_down(size_bytes, kHugePageBytes);
  if (huge_bytes != 0 && ::ftruncate(fd_.get(), static_cast<off_t>(huge_bytes)) == 0) {
    prepared_bytes_ = huge_bytes;
    collapse(fd_.get(), huge_bytes);
  }
}

Result<void> SealedImageWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail_errno("write boot image");
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    size_bytes_ += static_cast<uint64_t>(count);
  }
  return {};
}

Result<void> SealedImageWriter::append_file(const RegularFile& file, uint64_t offset, uint64_t count) {
  const uint64_t end = offset + count;
  while (offset < end) {
    auto position = static_cast<off_t>(offset);
    const ssize_t sent = ::sendfile(fd_.get(), file.fd(), &position, end - offset);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent < 0 && (errno == EINVAL || errno == ENOSYS)) {  // a file system without splice
      return append_by_reading(file, offset, end - offset);
    }
    if (sent < 0) {
      return fail_errno("{}: copy", file.label());
    }
    if (sent == 0) {
      return fail(Errc::kCorrupt, "{}: became shorter while it was read", file.label());
    }
    offset += static_cast<uint64_t>(sent);
    size_bytes_ += static_cast<uint64_t>(sent);
  }
  return {};
}

Result<void> SealedImageWriter::append_by_reading(const RegularFile& file, uint64_t offset, uint64_t count) {
  constexpr uint64_t kBufferBytes = 256U << 10;
  std::vector<std::byte> buffer(std::min(count, kBufferBytes));
  const uint64_t end = offset + count;
  while (offset < end) {
    const auto piece = std::span(buffer).first(std::min<uint64_t>(buffer.size(), end - offset));
    if (TANDEM_TRY(file.read_at(offset, piece)) != piece.size()) {
      return fail(Errc::kCorrupt, "{}: became shorter while it was read", file.label());
    }
    TANDEM_TRY(append(piece));
    offset += piece.size();
  }
  return {};
}

Result<SealedImage> SealedImageWriter::seal() && {
  if (size_bytes_ < prepared_bytes_ && ::ftruncate(fd_.get(), static_cast<off_t>(size_bytes_)) != 0) {
    return fail_errno("cut boot image");
  }
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return fail_errno("seal boot image");
  }
  return SealedImage(std::move(fd_), size_bytes_);
}

}  // namespace tandem
