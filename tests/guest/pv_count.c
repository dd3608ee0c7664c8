// SPDX-License-Identifier: Apache-2.0
// PV vCPU state: preempt_count of two CPUs that contend, for the host to compare with its own counts. They sleep but
// between START and COUNT, when the host looks at those. Arguments: switches=N: how often each is to lose its CPU; pages=N:
// each also writes to that many pages of its own all the time, which the host may have taken out of memory. CPU 0 only
// watches.
#include "tests/guest/lib/pv_calls.h"

enum { kMsToFinish = 200000, kWakeUp = 1, kContenders = 2, kPageBytes = 4096 };

static volatile unsigned spin, ready, leave;
static volatile uint64_t records[1 + kContenders];
static uint64_t pages, memory;  // of each contender; where those of CPU 0 would be

static void take_interrupt(unsigned intid) { (void)intid; }

static void spin_and_write(void) {
  const uint64_t own = memory + this_cpu()->index * pages * kPageBytes;
  for (uint64_t page = 0; spin != 0; page = page + 1 < pages ? page + 1 : 0) {
    if (pages != 0) {
      write64(own + page * kPageBytes, page);
    }
  }
}

static void contend(void* unused) {
  (void)unused;
  gic_init_cpu();
  gic_enable(kWakeUp);
  records[this_cpu()->index] = (uint64_t)pv_init();
  while (leave == 0) {
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (spin == 0 && leave == 0) {
      wait_for_interrupt();
      interrupts_on();
      interrupts_off();
    }
    spin_and_write();
  }
}

static uint64_t count_of(unsigned index) { return pv_record((int64_t)records[index])->preempt_count; }

// Both asleep: nothing is counted any more.
static void wait_for_sleep(unsigned times) {
  report(wait_until(&ready, times * kContenders, kMsToFinish), "pv_count", "both CPUs go to sleep");
  uint64_t last = 0, sum = count_of(1) + count_of(2);
  for (unsigned still = 0; still < 10; still = sum == last ? still + 1 : 0) {
    const uint64_t end = now() + ticks_of_ms(20);
    while (now() < end) {
    }
    last = sum;
    sum = count_of(1) + count_of(2);
  }
}

void payload_main(void) {
  const uint64_t switches = argument("switches", 1000);
  pages = argument("pages", 0);
  memory = ram_base() + ram_bytes() / 2;
  on_interrupt = take_interrupt;
  gic_init();
  for (unsigned index = 1; index <= kContenders; ++index) {
    report(start_cpu(index, contend, NULL) == PSCI_SUCCESS, "pv_count", "CPU %u starts", index);
  }
  wait_for_sleep(1);
  const uint64_t first[] = {count_of(1), count_of(2)};
  print("START\n");
  uart_get();
  spin = 1;
  gic_send_sgi(kWakeUp, 1);
  gic_send_sgi(kWakeUp, 2);
  const uint64_t end = now() + ticks_of_ms(kMsToFinish);
  while ((count_of(1) - first[0] < switches || count_of(2) - first[1] < switches) && now() < end) {
  }
  spin = 0;
  wait_for_sleep(2);
  print("COUNT %lu %lu\n", count_of(1) - first[0], count_of(2) - first[1]);
  uart_get();
}
