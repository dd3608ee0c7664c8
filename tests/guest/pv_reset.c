// SPDX-License-Identifier: Apache-2.0
// PV vCPU state over resets: each boot finds the region all zero, activates its records, has something written to them, and
// then does what a character on the console says: r SYSTEM_RESET, q power off. Argument reports=1: the back end knows
// preemption, and the host has pinned both CPUs to one of its own.
#include "tests/guest/lib/pv_calls.h"

enum { kMsToStart = 200000 };

static volatile unsigned started;
static volatile uint64_t second_record;

static void spin(void* unused) {
  (void)unused;
  second_record = (uint64_t)pv_init();
  __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
  for (;;) {
  }
}

void payload_main(void) {
  print("BOOT\n");
  const struct PvVcpuState node = pv_find();
  const unsigned nonzero = pv_nonzero_bytes(node.region, node.region_bytes);
  report(nonzero == 0, "pv_reset", "the region is zero at boot: %u bytes are not", nonzero);
  report(start_cpu(1, spin, NULL) == PSCI_SUCCESS, "pv_reset", "CPU 1 starts");
  report(wait_until(&started, 1, kMsToStart), "pv_reset", "CPU 1 has its record");
  const int64_t addr = pv_init();
  report(addr == (int64_t)node.region, "pv_reset", "CPU 0 has its record at %lx", (uint64_t)addr);
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (argument("reports", 0) != 0 && pv_record((int64_t)second_record)->preempt_count == 0 && now() < end) {
  }
  report((pv_record((int64_t)second_record)->preempt_count != 0) == (argument("reports", 0) != 0), "pv_reset",
         "the record of CPU 1 counts");
  print("READY\n");
  if (uart_get() == 'r') {
    hvc(PSCI_SYSTEM_RESET, 0, 0, 0);
    report(false, "pv_reset", "SYSTEM_RESET returned");
  }
}
