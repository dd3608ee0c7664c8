// SPDX-License-Identifier: Apache-2.0
// Each CPU's virtual and physical timer raises its own PPI on that CPU, once for each deadline.
#include "tests/guest/lib/payload.h"

enum { kMsToFinish = 200000, kDeadlines = 10, kMsPerDeadline = 2 };
enum { kEnable = 1, kMasked = 2 };
enum { kVirtualTimer = 27, kPhysicalTimer = 30 };

struct Seen {
  volatile unsigned virtual_count;
  volatile unsigned physical_count;
  volatile unsigned other_count;
  volatile unsigned early_count;
};
static struct Seen seen[kMaxCpus];
static volatile unsigned finished;

static void take_timer(unsigned intid) {
  struct Seen* mine = &seen[this_cpu()->index];
  if (intid == kVirtualTimer) {
    mine->early_count += now() < READ_SYSREG(cntv_cval_el0);
    WRITE_SYSREG(cntv_ctl_el0, kEnable | kMasked);
    mine->virtual_count += 1;
  } else if (intid == kPhysicalTimer) {
    WRITE_SYSREG(cntp_ctl_el0, kEnable | kMasked);
    mine->physical_count += 1;
  } else {
    mine->other_count += 1;
  }
}

// Sleeps until `count` is `wanted`; the deadline is taken in the handler, never missed between test and WFI.
static void sleep_until(const volatile unsigned* count, unsigned wanted) {
  while (*count < wanted) {
    wait_for_interrupt();
    interrupts_on();
    interrupts_off();
  }
}

static void run_timers(void* unused) {
  (void)unused;
  struct Seen* mine = &seen[this_cpu()->index];
  gic_init_cpu();
  gic_enable(kVirtualTimer);
  gic_enable(kPhysicalTimer);
  for (unsigned round = 1; round <= kDeadlines; ++round) {
    WRITE_SYSREG(cntv_cval_el0, now() + ticks_of_ms(kMsPerDeadline));
    WRITE_SYSREG(cntv_ctl_el0, kEnable);
    sleep_until(&mine->virtual_count, round);
    WRITE_SYSREG(cntp_cval_el0, READ_SYSREG(cntpct_el0) + ticks_of_ms(kMsPerDeadline));
    WRITE_SYSREG(cntp_ctl_el0, kEnable);
    sleep_until(&mine->physical_count, round);
  }
  __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

void payload_main(void) {
  const unsigned count = cpu_count();
  on_interrupt = take_timer;
  gic_init();
  report((READ_SYSREG(cntv_ctl_el0) & kEnable) == 0, "timer", "the virtual timer is off at entry");
  report((READ_SYSREG(cntp_ctl_el0) & kEnable) == 0, "timer", "the physical timer is off at entry");
  report(READ_SYSREG(cntfrq_el0) >= 1000000, "timer", "the frequency is %lu Hz", READ_SYSREG(cntfrq_el0));
  for (unsigned index = 1; index < count; ++index) {
    report(start_cpu(index, run_timers, NULL) == PSCI_SUCCESS, "timer", "CPU %u starts", index);
  }
  run_timers(NULL);
  report(wait_until(&finished, count, kMsToFinish), "timer", "all %u CPUs saw all deadlines", count);
  for (unsigned index = 0; index < count; ++index) {
    report(seen[index].virtual_count == kDeadlines && seen[index].physical_count == kDeadlines, "timer",
           "CPU %u took %u virtual and %u physical timer interrupts", index, seen[index].virtual_count,
           seen[index].physical_count);
    report(seen[index].other_count == 0 && seen[index].early_count == 0, "timer",
           "CPU %u took none too early, and no other", index);
  }
}
