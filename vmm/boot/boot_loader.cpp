// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/boot_loader.hpp"

#include <algorithm>

namespace tandem::boot {
namespace {

/// The host's view of the first `size_bytes` bytes of `range`.
std::span<std::byte> place_of(const GuestMemory& memory, GuestRange range, uint64_t size_bytes) {
  const auto bytes = memory.writable(range);
  TANDEM_ASSERT(bytes && size_bytes <= bytes->size(), "the layout was made for these parts and this RAM");
  return bytes->first(size_bytes);
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
  TANDEM_TRY(with_context(kernel.image.copy_to(place_of(memory, layout.kernel, kernel.image.size())), "load kernel"));
  if (initrd != nullptr) {
    TANDEM_ASSERT(layout.initrd.has_value(), "the layout was made for these parts");
    TANDEM_TRY(with_context(initrd->copy_to(place_of(memory, *layout.initrd, initrd->size())), "load initrd"));
  }
  std::ranges::copy(fdt, place_of(memory, layout.fdt, fdt.size()).begin());
  return {};
}

}  // namespace tandem::boot
