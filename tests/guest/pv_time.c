// SPDX-License-Identifier: Apache-2.0
// Stolen time (Arm DEN 0057A, "Stolen time"): found, one structure for each CPU, grows and never falls where two CPUs
// share one of the host's. The host pins them when this prints READY, and then sends a character. Argument off=1: the
// machine is without it.
#include "tests/guest/lib/payload.h"

enum { kMsToStart = 200000, kSmcccArchFeatures = (int)0x80000001, kStructureBytes = 64 };
enum { kRevision = 0, kAttributes = 4, kStolen = 8 };

#define PV_TIME_FEATURES 0xc5000020UL
#define PV_TIME_ST 0xc5000021UL
#define NOT_SUPPORTED (-1)

static volatile unsigned spinning;
static volatile int64_t addresses[2];

static void find_structure(void) {
  const unsigned index = this_cpu()->index;
  const int64_t addr = hvc(PV_TIME_ST, 0, 0, 0);
  addresses[index] = addr;
  report(addr > 0 && addr % kStructureBytes == 0, "pv_time", "CPU %u has its structure at %lx", index, (uint64_t)addr);
  report(hvc(PV_TIME_ST, 0, 0, 0) == addr, "pv_time", "CPU %u has it there when it asks again", index);
  const uintptr_t at = cached_view((uint64_t)addr);
  report(read32(at + kRevision) == 0 && read32(at + kAttributes) == 0, "pv_time",
         "CPU %u: revision and attributes are 0", index);
}

static void spin(void* unused) {
  (void)unused;
  find_structure();
  __atomic_store_n(&spinning, 1, __ATOMIC_RELEASE);
  for (;;) {
  }
}

static uint64_t stolen_of(unsigned index) { return read64(cached_view((uint64_t)addresses[index]) + kStolen); }

// Reads both until each has grown `times` times.
static void watch(unsigned times) {
  uint64_t last[] = {stolen_of(0), stolen_of(1)};
  const uint64_t first[] = {last[0], last[1]};
  unsigned growths[2] = {0, 0}, falls = 0;
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while ((growths[0] < times || growths[1] < times) && now() < end) {
    for (unsigned index = 0; index < 2; ++index) {
      const uint64_t stolen = stolen_of(index);
      growths[index] += stolen > last[index];
      falls += stolen < last[index];
      last[index] = stolen;
    }
  }
  for (unsigned index = 0; index < 2; ++index) {
    report(growths[index] >= times, "pv_time", "CPU %u: stolen time grew %u times, by %lu ns", index, growths[index],
           last[index] - first[index]);
  }
  report(falls == 0, "pv_time", "stolen time never fell");
}

// KVM's ARCH_FEATURES has PV_TIME_FEATURES in any case.
static void check_absence(void) {
  report(hvc(PV_TIME_FEATURES, PV_TIME_ST, 0, 0) == NOT_SUPPORTED, "pv_time", "PV_TIME_FEATURES is not supported");
  report(hvc(PV_TIME_ST, 0, 0, 0) == NOT_SUPPORTED, "pv_time", "PV_TIME_ST is not supported");
}

void payload_main(void) {
  if (argument("off", 0) != 0) {
    check_absence();
    return;
  }
  report(hvc((uint32_t)kSmcccArchFeatures, PV_TIME_FEATURES, 0, 0) == 0, "pv_time",
         "ARCH_FEATURES has PV_TIME_FEATURES");
  report(hvc(PV_TIME_FEATURES, PV_TIME_ST, 0, 0) == 0, "pv_time", "PV_TIME_FEATURES has PV_TIME_ST");
  report(hvc(PV_TIME_FEATURES, 0x12345678, 0, 0) == NOT_SUPPORTED, "pv_time", "PV_TIME_FEATURES has nothing else");
  find_structure();
  report(start_cpu(1, spin, NULL) == PSCI_SUCCESS, "pv_time", "CPU 1 starts");
  report(wait_until(&spinning, 1, kMsToStart), "pv_time", "CPU 1 has its structure");
  report(addresses[0] != addresses[1], "pv_time", "each CPU has a structure of its own");
  print("READY\n");
  uart_get();
  watch(20);
}
