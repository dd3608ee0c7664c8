// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/boot_layout.hpp"

#include <algorithm>
#include <string>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/size_text/size_text.hpp"

namespace tandem::boot {
namespace {

constexpr uint64_t kBlockBytes = 2U << 20;
constexpr uint64_t kFdtAlignment = 8;
constexpr uint64_t kFdtWindowBytes = 512U << 20;  // kernels before 4.2 find the device tree in there only
constexpr uint64_t kInitrdAlignment = 64U << 10;  // a whole page, whichever page size the guest uses
constexpr uint64_t kInitrdWindowBytes = uint64_t{32} << 30;
constexpr uint64_t kInitrdWindowAlignment = uint64_t{1} << 30;

std::unexpected<Error> does_not_fit(GuestRange ram, const BootSizes& sizes) {
  const std::string initrd =
      sizes.initrd_bytes == 0 ? "" : fmt::format(", initrd ({})", format_size(sizes.initrd_bytes));
  return fail(Errc::kOutOfRange, "kernel ({} with its BSS){} and device tree do not fit into {} of RAM",
              format_size(sizes.kernel_footprint_bytes), initrd, format_size(ram.size()));
}

/// The highest range of `size_bytes` inside [lowest, end) whose base is a multiple of `alignment`.
std::optional<GuestRange> highest_range(uint64_t lowest, uint64_t end, uint64_t size_bytes, uint64_t alignment) {
  if (end < lowest || size_bytes > end - lowest) {
    return std::nullopt;
  }
  const uint64_t base = align_down(end - size_bytes, alignment);
  return base < lowest ? std::nullopt : GuestRange::create(GuestAddr(base), size_bytes);
}

/// Address behind the last byte. @pre the range does not end at 2^64.
uint64_t end_of(GuestRange range) { return range.last().value() + 1; }

std::optional<GuestRange> place_initrd(GuestRange ram, GuestRange kernel, GuestRange fdt, uint64_t size_bytes) {
  if (const auto below = highest_range(end_of(kernel), fdt.base().value(), size_bytes, kInitrdAlignment)) {
    return below;
  }
  const uint64_t window_end = align_down(kernel.base().value(), kInitrdWindowAlignment) + kInitrdWindowBytes;
  return highest_range(end_of(fdt), std::min(end_of(ram), window_end), size_bytes, kInitrdAlignment);
}

}  // namespace

Result<BootLayout> place_boot_parts(GuestRange ram, const BootSizes& sizes) {
  const uint64_t ram_base = ram.base().value();
  TANDEM_ASSERT(is_aligned(ram_base, kBlockBytes) && is_aligned(ram.size(), kBlockBytes), "the board sees to it");
  if (sizes.fdt_bytes > kMaxFdtBytes) {
    return fail(Errc::kOutOfRange, "the device tree has {} bytes; at most {} are possible", sizes.fdt_bytes,
                kMaxFdtBytes);
  }
  const auto kernel_base = ram.base().plus(sizes.text_offset);
  const auto kernel = GuestRange::create(kernel_base.value_or(GuestAddr(UINT64_MAX)), sizes.kernel_footprint_bytes);
  if (!kernel_base || !kernel || !ram.contains(*kernel)) {
    return does_not_fit(ram, sizes);
  }
  // The end of that window is a 2 MiB boundary, so a device tree that ends there crosses none.
  const uint64_t fdt_end = std::min(end_of(ram), ram_base + kFdtWindowBytes);
  auto fdt = highest_range(end_of(*kernel), fdt_end, sizes.fdt_bytes, kFdtAlignment);
  if (!fdt) {
    return does_not_fit(ram, sizes);
  }
  BootLayout layout{.kernel = *kernel, .fdt = *fdt, .initrd = std::nullopt};
  if (sizes.initrd_bytes != 0) {
    layout.initrd = place_initrd(ram, *kernel, *fdt, sizes.initrd_bytes);
    if (!layout.initrd) {
      return does_not_fit(ram, sizes);
    }
  }
  return layout;
}

}  // namespace tandem::boot
