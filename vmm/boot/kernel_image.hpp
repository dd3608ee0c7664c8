// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "vmm/boot/image_format.hpp"
#include "vmm/lib/regular_file/regular_file.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"

namespace tandem::boot {

/// Largest kernel, decompressed and without BSS: more than ten times what distributions ship, and a bound on what a
/// hostile compressed file can make of itself.
inline constexpr uint64_t kMaxKernelBytes = 512U << 20;

/// A kernel, decompressed and kept for every reset.
struct KernelImage {
  enum class Container : uint8_t { kImage, kGzip, kZboot };

  Container container;  ///< What the file was.
  Arm64ImageHeader header;
  SealedImage image;  ///< Without what follows the end that the header gives.

  /// Memory that the kernel takes before it has looked at anything, from its first byte on.
  [[nodiscard]] uint64_t footprint_bytes() const { return std::max(header.image_size_bytes, image.size()); }
};

/// Loads the kernel in the file at `path`: an arm64 `Image`, a gzip'd one, or an EFI zboot image with a gzip or zstd
/// payload, told apart by content. Bytes after the end of an Image are no part of it and are dropped: signatures live
/// there.
/// @errors  Errc::kInvalidArgument: no regular file, or none of these formats, and which one it is if that is known;
///          Errc::kUnsupported: a compression that is not built in; Errc::kCorrupt: cut off or damaged;
///          Errc::kOutOfRange: more than `max_bytes`. One line, "kernel `path`: …".
Result<KernelImage> load_kernel_image(const std::string& path, uint64_t max_bytes = kMaxKernelBytes);

/// The kernel in an image that another `KernelImage` held, on this host or another.
/// @errors  Errc::kCorrupt: no arm64 Image; Errc::kOutOfRange: more than `max_bytes`.
Result<KernelImage> kernel_image_of(SealedImage image, uint64_t max_bytes = kMaxKernelBytes);

/// Loads the initial RAM disk in the file at `path`, whatever its content: only the guest knows its format.
/// @errors  Errc::kOutOfRange: empty, or more than `max_bytes` (the size of RAM), found before anything is read.
Result<SealedImage> load_initrd(const std::string& path, uint64_t max_bytes);

}  // namespace tandem::boot
