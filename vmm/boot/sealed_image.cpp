// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/sealed_image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#ifndef MFD_NOEXEC_SEAL  // Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace tandem::boot {

Result<void> SealedImage::copy_to(std::span<std::byte> out, uint64_t offset) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail_errno("read boot image");
    }
    TANDEM_ASSERT(count != 0, "a sealed image is as long as it says, and callers ask for no more");
    done += static_cast<size_t>(count);
  }
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
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return fail_errno("seal boot image");
  }
  return SealedImage(std::move(fd_), size_bytes_);
}

}  // namespace tandem::boot
