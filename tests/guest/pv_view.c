// SPDX-License-Identifier: Apache-2.0
// PV vCPU state for people to look at: CPU 0 watches two CPUs that are busy and two that wait in WFI, and draws what it reads.
// It starts at a character on the console, so that the host can put the busy ones on one of its CPUs before.
// Argument windows=N: how many tables.
#include "tests/guest/lib/pv_calls.h"

enum { kMsToStart = 200000, kFirstBusy = 1, kFirstIdle = 3, kEnd = 5, kColumns = 64, kPollsPerColumn = 10000 };

static volatile unsigned up;
static volatile uint64_t records[kEnd];

struct Row {
  char moments[kColumns + 1];
  uint64_t ones;
  uint64_t changes;
};
static struct Row rows[kEnd];

static PvRecord record_of(unsigned index) { return pv_record((int64_t)records[index]); }

static void be_busy_or_idle(void* unused) {
  (void)unused;
  const unsigned index = this_cpu()->index;
  records[index] = (uint64_t)pv_init();
  __atomic_add_fetch(&up, 1, __ATOMIC_RELEASE);
  for (;;) {
    if (index >= kFirstIdle) {
      wait_for_interrupt();
    }
  }
}

// A column is one moment of all rows; many polls lie between two.
static void watch(void) {
  uint64_t before[kEnd];
  for (unsigned index = kFirstBusy; index < kEnd; ++index) {
    rows[index] = (struct Row){.ones = 0};
    before[index] = record_of(index)->preempt_count;
  }
  for (unsigned column = 0; column < kColumns; ++column) {
    for (unsigned poll = 0; poll < kPollsPerColumn; ++poll) {
      for (unsigned index = kFirstBusy; index < kEnd; ++index) {
        const uint32_t preempted = record_of(index)->preempted;
        rows[index].ones += preempted;
        rows[index].moments[column] = preempted != 0 ? '#' : '.';
      }
    }
  }
  for (unsigned index = kFirstBusy; index < kEnd; ++index) {
    rows[index].changes = record_of(index)->preempt_count - before[index];
  }
}

static void draw(void) {
  for (unsigned index = kFirstBusy; index < kEnd; ++index) {
    print("vCPU %u %s  %s  %lu %% of %u polls, %lu times\n", index, index >= kFirstIdle ? "WFI " : "busy",
          rows[index].moments, rows[index].ones * 100 / (kColumns * kPollsPerColumn), kColumns * kPollsPerColumn,
          rows[index].changes);
  }
  print("\n");
}

void payload_main(void) {
  for (unsigned index = kFirstBusy; index < kEnd; ++index) {
    if (start_cpu(index, be_busy_or_idle, NULL) != PSCI_SUCCESS) {
      report(false, "pv_view", "CPU %u does not start", index);
    }
  }
  report(wait_until(&up, kEnd - kFirstBusy, kMsToStart), "pv_view", "two CPUs are busy, two wait in WFI");
  print("READY\n");
  uart_get();
  uint64_t idle_ones = 0;
  for (uint64_t window = argument("windows", 1); window > 0; --window) {
    watch();
    draw();
    idle_ones += rows[kFirstIdle].ones + rows[kFirstIdle + 1].ones;
  }
  report(idle_ones == 0, "pv_view", "a CPU that waits in WFI is not preempted");
}
