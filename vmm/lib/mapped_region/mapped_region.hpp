// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

#include "vmm/lib/result/result.hpp"

namespace tandem {

/// Owns one mapping of this process's address space and unmaps it.
class MappedRegion {
 public:
  MappedRegion() = default;

  /// mmap(2) at an address the kernel chooses.
  /// @pre     size_bytes > 0.
  static Result<MappedRegion> map(size_t size_bytes, int protection, int flags, int fd = -1, off_t offset = 0);

  /// As `map`, at an address that is a multiple of `alignment` (a power of two, at least the page size).
  static Result<MappedRegion> map_aligned(size_t size_bytes, size_t alignment, int protection, int flags, int fd = -1);

  MappedRegion(MappedRegion&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedRegion& operator=(MappedRegion&& other) noexcept {
    if (this != &other) {
      unmap();
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;
  ~MappedRegion() { unmap(); }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] size_t size() const { return bytes_.size(); }

 private:
  explicit MappedRegion(std::span<std::byte> bytes) : bytes_(bytes) {}
  void unmap();

  std::span<std::byte> bytes_;
};

/// The host's page size [bytes].
size_t host_page_size();

}  // namespace tandem
