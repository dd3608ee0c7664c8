// SPDX-License-Identifier: Apache-2.0
// Writes to `pages=N` pages of RAM over and over, each time after it has seen that what it wrote before is still there: a
// page that a migration loses, or brings twice, or brings from another moment, is found, and so is one of another guest,
// whose `stamp=N` differs. CPUs share the pages. Prints `ROUND n` now and then, until a character comes.
#include "tests/guest/lib/payload.h"

enum { kPageBytes = 4096, kWordsBetween = kPageBytes / 8 / 4, kRoundsPerLine = 8, kRxEmpty = 1 << 4 };

static unsigned cpus;
static unsigned pages;
static unsigned stamp;
static uint64_t* memory;
static volatile unsigned stop;
static volatile unsigned done;
static volatile unsigned lost[kMaxCpus];

static uint64_t pattern(unsigned page, unsigned word, uint64_t round) {
  return round << 32 | (uint64_t)stamp << 20 | (uint64_t)page << 8 | word;
}

// One look at, and one write to, each page of this CPU.
static void write_round(unsigned cpu, uint64_t round) {
  for (unsigned page = cpu; page < pages; page += cpus) {
    volatile uint64_t* const words = memory + (size_t)page * (kPageBytes / 8);
    for (unsigned word = 0; word < 4; ++word) {
      if (round > 1 && words[word * kWordsBetween] != pattern(page, word, round - 1)) {
        lost[cpu] += 1;
      }
      words[word * kWordsBetween] = pattern(page, word, round);
    }
  }
}

static void write_until_stopped(void* argument) {
  const unsigned cpu = (unsigned)(uintptr_t)argument;
  for (uint64_t round = 1; stop == 0; ++round) {
    write_round(cpu, round);
  }
  __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
}

void payload_main(void) {
  cpus = cpu_count();
  pages = (unsigned)argument("pages", 256);
  stamp = (unsigned)argument("stamp", 0);
  memory = (uint64_t*)(((uintptr_t)_end + (2 << 20)) & ~(uintptr_t)(kPageBytes - 1));
  for (unsigned cpu = 1; cpu < cpus; ++cpu) {
    start_cpu(cpu, write_until_stopped, (void*)(uintptr_t)cpu);
  }
  for (uint64_t round = 1; stop == 0; ++round) {
    write_round(0, round);
    if (round % kRoundsPerLine == 0) {
      print("ROUND %lu\n", (unsigned long)round);
    }
    stop = (read32(kUart + UARTFR) & kRxEmpty) == 0;
  }
  report(wait_until(&done, cpus - 1, 600000), "cpus", "all CPUs still run");
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    report(lost[cpu] == 0, "ram", "CPU %u finds what it wrote: %u words lost", cpu, lost[cpu]);
  }
}
