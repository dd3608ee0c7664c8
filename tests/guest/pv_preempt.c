// SPDX-License-Identifier: Apache-2.0
// PV vCPU state: what two CPUs read of each other. The host pins them when this prints READY, and then sends a character.
// Arguments: shared=1 both are on one host CPU, else each has its own; reports=1 the back end knows preemption, else all
// is 0; polls=N. At its end it prints COUNTS, how often each was preempted since it
// first called INIT, for the host to compare, and waits for another character.
#include "tests/guest/lib/pv_calls.h"

enum { kMsToStart = 200000, kWakeUp = 1, kSettle = 1000000, kFew = 1000, kWindow = 1000 };

// What CPU 1 is told to do, and that it is at it.
enum Task { kNothing, kPollOther, kSpin, kSleep, kSuspend, kSpinReleased, kLeave };
static volatile unsigned task;
static volatile unsigned at_it;
static volatile unsigned done;

static bool shared, reports;
static uint64_t polls;
static volatile uint64_t records[2];  // addresses

static PvRecord record_of(unsigned index) { return pv_record((int64_t)records[index]); }

// How many of `count` polls of a record read 1. The first failure to read 0 or 1 ends it.
static uint64_t ones_in(PvRecord record, uint64_t count) {
  uint64_t ones = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t value = record->preempted;
    ones += value;
    if (value > 1) {
      report(false, "pv_preempt", "preempted reads %u", value);
      return 0;
    }
  }
  return ones;
}

// As above, of `count` polls while nobody took the other's host CPU: in windows over which its count stands still, and at
// whose start it is not preempted. The host compares the counts with its own, so that they excuse nothing that did not happen.
// *made is how many there were: less than `count` if the time was over.
static uint64_t ones_in_quiet(PvRecord record, uint64_t count, volatile uint64_t* made) {
  uint64_t ones = 0, polled = 0;
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (polled < count && now() < end) {
    const uint64_t before = record->preempt_count;
    __asm__ volatile("dmb ish" ::: "memory");
    if (record->preempted != 0) {
      continue;
    }
    const uint64_t ones_of_window = ones_in(record, kWindow);
    __asm__ volatile("dmb ish" ::: "memory");
    if (record->preempt_count == before) {
      ones += ones_of_window;
      polled += kWindow;
    }
  }
  *made = polled;
  return ones;
}

static void take_interrupt(unsigned intid) { (void)intid; }

// Sleeps until CPU 0 has given it another task. The wake-up is pending, then taken, never missed.
static void sleep_until_told(unsigned now_at) {
  while (task == now_at) {
    wait_for_interrupt();
    interrupts_on();
    interrupts_off();
  }
}

static void suspend_until_told(void) {
  while (task == kSuspend) {
    hvc(PSCI_CPU_SUSPEND, 0, 0, 0);
    interrupts_on();
    interrupts_off();
  }
}

static void spin_until_told(unsigned now_at) {
  while (task == now_at) {
  }
}

static volatile uint64_t count_before_release;
static volatile uint64_t ones_of_cpu1, polls_of_cpu1;

static uint64_t ones_of_other(unsigned other, volatile uint64_t* made) {
  if (!shared) {
    return ones_in_quiet(record_of(other), polls, made);
  }
  *made = polls;
  return ones_in(record_of(other), polls);
}

static void obey(unsigned now_at) {
  switch (now_at) {
    case kPollOther:
      ones_of_cpu1 = ones_of_other(0, &polls_of_cpu1);
      __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
      spin_until_told(now_at);
      break;
    case kSleep:
      sleep_until_told(now_at);
      break;
    case kSuspend:
      suspend_until_told();
      break;
    case kSpinReleased:
      count_before_release = record_of(1)->preempt_count;
      pv_release();
      __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
      spin_until_told(now_at);
      records[1] = (uint64_t)pv_init();
      break;
    default:
      spin_until_told(now_at);
  }
}

// CPU 1. With an argument it takes its record first; without, the record that it had goes on.
static void second_cpu(void* must_init) {
  gic_init_cpu();
  gic_enable(kWakeUp);
  if (must_init != NULL) {
    records[1] = (uint64_t)pv_init();
  }
  for (unsigned now_at = task; now_at != kLeave; now_at = task) {
    __atomic_store_n(&at_it, now_at, __ATOMIC_RELEASE);
    obey(now_at);
  }
  __atomic_store_n(&at_it, kLeave, __ATOMIC_RELEASE);
  hvc(PSCI_CPU_OFF, 0, 0, 0);
  report(false, "pv_preempt", "CPU_OFF returned");
}

// Waits until CPU 1 is at its new task. It is not woken to go to sleep.
static void tell(unsigned new_task) {
  const bool sleeps = at_it == kSleep || at_it == kSuspend;
  done = 0;
  __atomic_store_n(&task, new_task, __ATOMIC_RELEASE);
  if (sleeps) {
    gic_send_sgi(kWakeUp, 1);
  }
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (__atomic_load_n(&at_it, __ATOMIC_ACQUIRE) != new_task) {
    if (now() > end) {
      report(false, "pv_preempt", "CPU 1 does not begin task %u", new_task);
      finish();
    }
  }
}

// With CPU 1 about to leave its CPU: waits until it has, and then reads only 0, however often.
static void expect_only_zero(const char* what) {
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (record_of(1)->preempted != 0 && now() < end) {  // preempted on its way
  }
  (void)ones_in(record_of(1), kSettle);
  const uint64_t count = record_of(1)->preempt_count;
  const uint64_t ones = ones_in(record_of(1), polls);
  report(ones == 0, "pv_preempt", "%s: %lu of %lu polls read 1", what, ones, polls);
  report(record_of(1)->preempt_count == count, "pv_preempt", "%s: the count stands still", what);
}

static void judge_contention(const char* who, uint64_t ones, uint64_t made) {
  const bool good = !reports ? ones == 0 : shared ? ones >= polls / 100 * 99 : ones <= polls / 100;
  report(good && made >= polls, "pv_preempt", "%s, two spinning CPUs on %s: %lu of %lu polls read 1", who,
         shared ? "one host CPU" : "two host CPUs", ones, made);
}

static void check_contention(const char* when) {
  print("%s\n", when);
  tell(kPollOther);
  uint64_t made = 0;
  const uint64_t ones = ones_of_other(1, &made);
  report(wait_until(&done, 1, 2 * kMsToStart), "pv_preempt", "CPU 1 has polled");
  judge_contention("CPU 0", ones, made);
  judge_contention("CPU 1", ones_of_cpu1, polls_of_cpu1);
}

// Counts grow where two share a CPU: no end but that, or a hang.
static void check_count(void) {
  tell(kSpin);
  const uint64_t before = record_of(1)->preempt_count;
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (shared && reports && record_of(1)->preempt_count == before && now() < end) {
  }
  const uint64_t after = record_of(1)->preempt_count;
  report(reports ? !shared || after > before : after == 0, "pv_preempt", "the count went from %lu to %lu", before,
         after);
}

static void check_own_record(void) {
  report(ones_in(record_of(0), polls / 10) == 0, "pv_preempt", "a running CPU reads 0 of itself");
}

static void check_released(void) {
  tell(kSpinReleased);
  wait_until(&done, 1, kMsToStart);
  unsigned nonzero = 0;
  for (unsigned i = 0; i < polls / kFew; ++i) {
    nonzero += pv_nonzero_bytes(records[1], PV_VCPU_STATE_RECORD_BYTES);
  }
  report(nonzero == 0, "pv_preempt", "a released record reads all zero while its CPU spins");
}

static void check_off(void) {
  tell(kLeave);
  const uint64_t end = now() + ticks_of_ms(kMsToStart);
  while (hvc(PSCI_AFFINITY_INFO, mpidr_of(1), 0, 0) != 1 && now() < end) {
  }
  expect_only_zero("after CPU_OFF");
}

void payload_main(void) {
  shared = argument("shared", 0) != 0;
  reports = argument("reports", 0) != 0;
  polls = argument("polls", 10000000);
  on_interrupt = take_interrupt;
  gic_init();
  print("READY\n");
  uart_get();
  records[0] = (uint64_t)pv_init();
  task = kSpin;
  start_cpu(1, second_cpu, &polls);
  tell(kSpin);
  check_own_record();
  check_contention("after INIT");
  check_count();
  tell(kSleep);
  expect_only_zero("in WFI");
  tell(kSuspend);
  expect_only_zero("in CPU_SUSPEND");
  check_contention("awake again");
  check_released();
  check_contention("after RELEASE and INIT");
  check_off();
  task = kSpin;
  at_it = kNothing;
  start_cpu(1, second_cpu, NULL);
  tell(kSpin);
  check_contention("after CPU_OFF and CPU_ON");
  const uint64_t counts[] = {record_of(0)->preempt_count, count_before_release + record_of(1)->preempt_count};
  print("COUNTS %lu %lu\n", counts[0], counts[1]);
  uart_get();
}
