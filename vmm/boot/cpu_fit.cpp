// SPDX-License-Identifier: Apache-2.0
#include "vmm/boot/cpu_fit.hpp"

#include "vmm/lib/bits/bits.hpp"

namespace tandem::boot {
namespace {

/// ID_AA64MMFR0_EL1, as far as it matters here.
struct MemoryModel {
  bool granule_4k;
  bool granule_16k;
  bool granule_64k;
  bool mixed_endian;
};

MemoryModel decode(uint64_t id_aa64mmfr0) {
  constexpr uint64_t kNo4k = 0xf;
  constexpr uint64_t kNo64k = 0xf;
  constexpr uint64_t kNo16k = 0;
  return {.granule_4k = bit_field(id_aa64mmfr0, 31, 28) != kNo4k,    // TGran4
          .granule_16k = bit_field(id_aa64mmfr0, 23, 20) != kNo16k,  // TGran16
          .granule_64k = bit_field(id_aa64mmfr0, 27, 24) != kNo64k,  // TGran64
          .mixed_endian = bit_field(id_aa64mmfr0, 11, 8) != 0};      // BigEnd
}

bool has_granule(const MemoryModel& cpu, unsigned page_kib) {
  switch (page_kib) {
    case 4:
      return cpu.granule_4k;
    case 16:
      return cpu.granule_16k;
    case 64:
      return cpu.granule_64k;
    default:
      return true;  // the header does not say
  }
}

}  // namespace

Result<void> require_cpu_fits(const Arm64ImageHeader& kernel, uint64_t id_aa64mmfr0) {
  const MemoryModel cpu = decode(id_aa64mmfr0);
  if (!has_granule(cpu, kernel.page_kib)) {
    return fail(Errc::kUnsupported, "it was built for pages of {} KiB, which this host's CPU does not have",
                kernel.page_kib);
  }
  // A vCPU is entered little-endian; a big-endian kernel switches over by itself, if it can.
  if (kernel.big_endian && !cpu.mixed_endian) {
    return fail(Errc::kUnsupported, "it is big-endian, which this host's CPU cannot be");
  }
  return {};
}

}  // namespace tandem::boot
