// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/lib/regular_file/regular_file.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem {

/// What a reset loads again: the bytes of a boot image in a memfd that is sealed against every change. It is mapped
/// only while it is copied, so that it costs the process nothing but its own pages.
class SealedImage {
 public:
  [[nodiscard]] uint64_t size() const { return size_bytes_; }
  /// The sealed memfd, for those who pass it on.
  [[nodiscard]] int fd() const { return fd_.get(); }

  /// Fills `out` with the bytes from `offset` on.
  /// @pre     offset + out.size() <= size().
  /// @thread  any.
  Result<void> copy_to(std::span<std::byte> out, uint64_t offset = 0) const;

  /// All bytes, for reading. @pre size() > 0.
  [[nodiscard]] Result<MappedRegion> map() const {
    return MappedRegion::map(size_bytes_, PROT_READ, MAP_PRIVATE, fd_.get());
  }

 private:
  friend class SealedImageWriter;
  SealedImage(UniqueFd fd, uint64_t size_bytes) : fd_(std::move(fd)), size_bytes_(size_bytes) {}

  UniqueFd fd_;
  uint64_t size_bytes_;
};

/// Builds a `SealedImage` from front to back.
class SealedImageWriter {
 public:
  /// @param name  shown by the host in /proc/PID/fd.
  static Result<SealedImageWriter> create(const char* name);

  /// Prepares for `size_bytes` bytes, whether or not as many come: whole huge pages among them become huge pages where
  /// the host has them. To fill, copy and free a kernel takes less than half the time then (scripts/bench boot).
  /// @pre  nothing was appended.
  void expect(uint64_t size_bytes);

  [[nodiscard]] uint64_t size() const { return size_bytes_; }

  Result<void> append(std::span<const std::byte> bytes);

  /// Appends `count` bytes of `file` from `offset` on, without a detour through this process where the host can.
  /// @errors  Errc::kCorrupt: the file ends before.
  Result<void> append_file(const RegularFile& file, uint64_t offset, uint64_t count);

  /// Ends writing.
  Result<SealedImage> seal() &&;

 private:
  explicit SealedImageWriter(UniqueFd fd) : fd_(std::move(fd)) {}
  Result<void> append_by_reading(const RegularFile& file, uint64_t offset, uint64_t count);

  UniqueFd fd_;
  uint64_t size_bytes_ = 0;
  uint64_t prepared_bytes_ = 0;  // length of the memfd before anything was appended
};

}  // namespace tandem
