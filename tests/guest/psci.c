// SPDX-License-Identifier: Apache-2.0
// PSCI (DEN 0022F) as a bare-metal guest calls it. Argument `off=1`: a secondary CPU, not the boot CPU,
// powers the machine off at the end.
#include "tests/guest/lib/payload.h"

enum { kMsToStart = 200000 };
enum { kAffinityOn = 0, kAffinityOff = 1 };

static volatile unsigned started;
static volatile uint64_t mpidr_seen;
static volatile unsigned may_leave;

static void note_start(void* unused) {
  (void)unused;
  mpidr_seen = this_cpu()->mpidr;
  __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
  wait_until(&may_leave, 1, 2UL * kMsToStart);
  hvc(PSCI_CPU_OFF, 0, 0, 0);
  report(false, "psci", "CPU_OFF returned");
}

static void power_off(void* unused) {
  (void)unused;
  finish();
}

static int64_t affinity_info(unsigned index) { return hvc(PSCI_AFFINITY_INFO, mpidr_of(index), 0, 0); }

static bool wait_for_affinity(unsigned index, int64_t wanted) {
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (affinity_info(index) != wanted) {
    if (now() > end) {
      return false;
    }
  }
  return true;
}

static void check_version_and_features(void) {
  const int64_t version = hvc(PSCI_VERSION, 0, 0, 0);
  report(version >= 0x10000, "psci", "version %lx is at least 1.0", (uint64_t)version);
  static const uint32_t offered[] = {
      PSCI_CPU_OFF,      PSCI_SYSTEM_OFF,    (uint32_t)PSCI_CPU_ON,       (uint32_t)PSCI_CPU_SUSPEND,
      PSCI_SYSTEM_RESET, PSCI_SYSTEM_RESET2, (uint32_t)PSCI_AFFINITY_INFO};
  for (unsigned i = 0; i < sizeof offered / sizeof offered[0]; ++i) {
    report(hvc(PSCI_FEATURES, offered[i], 0, 0) >= 0, "psci", "FEATURES offers %x", offered[i]);
  }
  report(hvc(PSCI_FEATURES, PSCI_SYSTEM_SUSPEND, 0, 0) == PSCI_NOT_SUPPORTED, "psci", "SYSTEM_SUSPEND is not offered");
  report(hvc(PSCI_SYSTEM_SUSPEND, (uint64_t)secondary_entry, 0, 0) == PSCI_NOT_SUPPORTED, "psci",
         "SYSTEM_SUSPEND is not supported");
  report(hvc(0x8400ffff, 0, 0, 0) == PSCI_NOT_SUPPORTED, "psci", "an unknown function is not supported");
}

static void check_refusals(void) {
  report(hvc(PSCI_CPU_ON, mpidr_of(0), (uint64_t)secondary_entry, 0) == PSCI_ALREADY_ON, "psci",
         "CPU_ON of the running CPU says it is on");
  report(hvc(PSCI_CPU_ON, 0x00ff00ffff, (uint64_t)secondary_entry, 0) == PSCI_INVALID_PARAMETERS, "psci",
         "CPU_ON of a CPU that is not there is refused");
  report(hvc(PSCI_AFFINITY_INFO, 0x00ff00ffff, 0, 0) == PSCI_INVALID_PARAMETERS, "psci",
         "AFFINITY_INFO of a CPU that is not there is refused");
  report(affinity_info(0) == kAffinityOn, "psci", "AFFINITY_INFO of the running CPU is on");
}

static void check_start(unsigned index) {
  started = 0;
  may_leave = 0;
  report(affinity_info(index) == kAffinityOff, "psci", "CPU %u is off", index);
  report(start_cpu(index, note_start, NULL) == PSCI_SUCCESS, "psci", "CPU_ON of CPU %u succeeds", index);
  report(wait_until(&started, 1, kMsToStart), "psci", "CPU %u starts", index);
  report(mpidr_seen == mpidr_of(index), "psci", "CPU %u has the MPIDR %lx that the device tree gives it", index,
         (uint64_t)mpidr_seen);
  report(start_cpu(index, note_start, NULL) == PSCI_ALREADY_ON, "psci", "CPU_ON of running CPU %u says it is on",
         index);
  report(affinity_info(index) == kAffinityOn, "psci", "CPU %u is on", index);
  may_leave = 1;
  report(wait_for_affinity(index, kAffinityOff), "psci", "CPU %u is off after CPU_OFF", index);
}

void payload_main(void) {
  check_version_and_features();
  check_refusals();
  const unsigned count = cpu_count();
  for (unsigned round = 0; round < 2; ++round) {  // a CPU that went off comes on again
    for (unsigned index = 1; index < count; ++index) {
      check_start(index);
    }
  }
  if (argument("off", 0) != 0) {
    start_cpu(count - 1, power_off, NULL);
    for (;;) {
      wait_for_interrupt();
    }
  }
}
