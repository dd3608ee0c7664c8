// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/result/result.hpp"

/// Where the parts of a boot go in guest RAM.
/// @spec  Linux Documentation/arch/arm64/booting.rst, "Setup the device tree" and "Call the kernel image".
namespace tandem::boot {

/// Largest device tree that Linux on arm64 accepts.
inline constexpr uint64_t kMaxFdtBytes = 2U << 20;

/// What is to be placed.
struct BootSizes {
  uint64_t text_offset = 0;             ///< As in the kernel's header.
  uint64_t kernel_footprint_bytes = 0;  ///< With BSS.
  uint64_t initrd_bytes = 0;            ///< 0: there is none.
  uint64_t fdt_bytes = kMaxFdtBytes;    ///< Or a bound, when the blob is still to be built.
};

/// Disjoint ranges, all inside RAM.
struct BootLayout {
  GuestRange kernel;  ///< Its base is also the entry point.
  GuestRange fdt;
  std::optional<GuestRange> initrd;
};

/// State in which the primary vCPU enters the kernel; x1, x2 and x3 are 0.
struct BootRegisters {
  uint64_t pc;
  uint64_t x0;
};

[[nodiscard]] inline BootRegisters boot_registers(const BootLayout& layout) {
  return {.pc = layout.kernel.base().value(), .x0 = layout.fdt.base().value()};
}

/// Places the kernel at the start of RAM, the device tree at the end of the first 512 MiB, and the initrd below the
/// device tree, or above if there is no room: so the memory behind the kernel stays free as far as possible.
/// @pre     `ram` starts and ends on 2 MiB boundaries.
/// @errors  Errc::kOutOfRange: not everything fits; the text gives the sizes.
Result<BootLayout> place_boot_parts(GuestRange ram, const BootSizes& sizes);

}  // namespace tandem::boot
