// SPDX-License-Identifier: Apache-2.0
// A software-generated interrupt reaches the CPU it names, and no other, beyond 16 CPUs too (field RS, Aff1).
#include "tests/guest/lib/payload.h"

enum { kMsToArrive = 200000, kSgi = 5, kAnswer = 6 };

static volatile unsigned ready;
static volatile unsigned answers;
static volatile unsigned taken[kMaxCpus];

static void take_sgi(unsigned intid) {
  const unsigned index = this_cpu()->index;
  if (intid == kSgi) {
    taken[index] += 1;
    gic_send_sgi(kAnswer, 0);
  } else if (intid == kAnswer && index == 0) {
    __atomic_add_fetch(&answers, 1, __ATOMIC_RELEASE);
  } else {
    report(false, "sgi", "CPU %u took interrupt %u", index, intid);
  }
}

static void serve(void* unused) {
  (void)unused;
  gic_init_cpu();
  gic_enable(kSgi);
  interrupts_on();
  __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  for (;;) {
    wait_for_interrupt();
  }
}

static void check(unsigned index) {
  answers = 0;
  gic_send_sgi(kSgi, index);
  report(wait_until(&answers, 1, kMsToArrive), "sgi", "CPU %u (MPIDR %lx) answers", index, mpidr_of(index));
}

void payload_main(void) {
  const unsigned count = cpu_count();
  on_interrupt = take_sgi;
  gic_init();
  gic_enable(kSgi);
  gic_enable(kAnswer);
  interrupts_on();
  for (unsigned index = 1; index < count; ++index) {
    if (start_cpu(index, serve, NULL) != PSCI_SUCCESS) {
      report(false, "sgi", "CPU %u does not start", index);
      return;
    }
  }
  report(wait_until(&ready, count - 1, kMsToArrive), "sgi", "%u CPUs are up", count);
  for (unsigned index = 0; index < count; ++index) {
    check(index);
  }
  for (unsigned index = 0; index < count; ++index) {
    report(taken[index] == 1, "sgi", "CPU %u took one, of %u that were sent", index, count);
  }
}
