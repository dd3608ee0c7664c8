// SPDX-License-Identifier: Apache-2.0
// First process of the smallest Linux guest: powers it off. It needs no C library.
#include <asm/unistd.h>
#include <linux/reboot.h>

void _start(void) {
  register long magic1 __asm__("x0") = (int)LINUX_REBOOT_MAGIC1;
  register long magic2 __asm__("x1") = LINUX_REBOOT_MAGIC2;
  register long command __asm__("x2") = LINUX_REBOOT_CMD_POWER_OFF;
  register long number __asm__("x8") = __NR_reboot;
  __asm__ volatile("svc #0" : "+r"(magic1) : "r"(magic2), "r"(command), "r"(number) : "memory");
  for (;;) {
    __asm__ volatile("wfi");
  }
}
