// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/boot/image_format.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::boot {

/// Refuses a kernel that its header says was built for a page size or a byte order that the CPU lacks: it would end in
/// a silent loop before its first word on the console. A header that does not give the page size is believed.
/// @param   id_aa64mmfr0  ID_AA64MMFR0_EL1 as the guest reads it.
/// @errors  Errc::kUnsupported.
/// @spec    Arm DDI 0487, "ID_AA64MMFR0_EL1, AArch64 Memory Model Feature Register 0"
Result<void> require_cpu_fits(const Arm64ImageHeader& kernel, uint64_t id_aa64mmfr0);

}  // namespace tandem::boot
