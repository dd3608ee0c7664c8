// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/boot_loader.hpp"

#include <algorithm>

namespace tandem::boot {
namespace {

/// Writes the first `size_bytes` bytes of `range` by `copy(host bytes)`.
template <typename Copy>
Result<void> fill(const GuestMemory& memory, GuestRange range, uint64_t size_bytes, Copy copy) {
  const auto bytes = memory.writable(range);
  TANDEM_ASSERT(bytes && size_bytes <= bytes->size(), "the layout was made for these parts and this RAM");
  TANDEM_TRY(copy(bytes->first(size_bytes)));
  memory.mark_written(bytes->first(size_bytes));
  return {};
}

Result<void> fill_from(const GuestMemory& memory, GuestRange range, const SealedImage& image) {
  return fill(memory, range, image.size(), [&image](std::span<std::byte> place) { return image.copy_to(place); });
}

}  // namespace

BootSizes boot_sizes(const KernelImage& kernel, const SealedImage* initrd, uint64_t fdt_bytes) {
  return {.text_offset = kernel.header.text_offset,
          .kernel_footprint_bytes = kernel.footprint_bytes(),
          .initrd_bytes = initrd == nullptr ? 0 : initrd->size(),
          .fdt_bytes = fdt_bytes};
}

Result<void> load_boot_parts(const GuestMemory& memory, const BootLayout& layout, const KernelImage& kernel,
                             const SealedImage* initrd, std::span<const std::byte> fdt) {
  TANDEM_TRY(with_context(fill_from(memory, layout.kernel, kernel.image), "load kernel"));
  if (initrd != nullptr) {
    TANDEM_ASSERT(layout.initrd.has_value(), "the layout was made for these parts");
    TANDEM_TRY(with_context(fill_from(memory, *layout.initrd, *initrd), "load initrd"));
  }
  return fill(memory, layout.fdt, fdt.size(), [fdt](std::span<std::byte> place) -> Result<void> {
    std::ranges::copy(fdt, place.begin());
    return {};
  });
}

}  // namespace tandem::boot
