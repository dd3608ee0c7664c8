// SPDX-License-Identifier: Apache-2.0
// Tells the host that the guest panicked, as Linux does through pvpanic-mmio: the VMM ends with status 3.
#include "tests/guest/lib/payload.h"

enum { kPanicked = 1 };

void payload_main(void) {
  unsigned bytes = 0;
  const void* reg = dt_property(dt_find_compatible("qemu,pvpanic-mmio", kNoNode), "reg", &bytes);
  report(reg != NULL, "pvpanic", "the device tree has the device");
  if (reg == NULL) {
    return;
  }
  const uintptr_t device = dt_two_cells(reg, 0);
  report((read8(device) & kPanicked) != 0, "pvpanic", "the device offers the panicked event");
  print_exit();
  write8(device, kPanicked);
  for (;;) {
    wait_for_interrupt();
  }
}
