// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "vmm/boot/boot_layout.hpp"
#include "vmm/boot/kernel_image.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"

namespace tandem::boot {

/// What `kernel` and `initrd` (may be nullptr) need, with `fdt_bytes` for the device tree.
BootSizes boot_sizes(const KernelImage& kernel, const SealedImage* initrd, uint64_t fdt_bytes = kMaxFdtBytes);

/// Copies all parts to their places.
/// @pre     `layout` was made for these parts and for the RAM behind `memory`, one region of it; no vCPU runs.
/// @errors  as reading the images fails.
Result<void> load_boot_parts(const GuestMemory& memory, const BootLayout& layout, const KernelImage& kernel,
                             const SealedImage* initrd, std::span<const std::byte> fdt);

}  // namespace tandem::boot
