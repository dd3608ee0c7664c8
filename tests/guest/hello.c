// SPDX-License-Identifier: Apache-2.0
// The machine starts a payload as the boot protocol says, and powers off when asked.
#include "tests/guest/lib/payload.h"

void payload_main(void) {
  print("hello\n");
  report((entry.sctlr & 1) == 0, "boot", "the MMU is off at entry");
  report(field(entry.daif, 6, 4) == 0xf, "boot", "interrupts are masked at entry");
  report(entry.other_arguments == 0, "boot", "x1, x2 and x3 are 0 at entry");
  report((uintptr_t)entry.dtb % 8 == 0, "boot", "the device tree is aligned to 8 bytes");
  report((uintptr_t)_start % (2U << 20) == 0, "boot", "the image is at its text_offset from a multiple of 2 MiB");
  report(field(READ_SYSREG(currentel), 2, 2) == 1, "boot", "the CPU is in EL1");
}
