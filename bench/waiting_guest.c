// SPDX-License-Identifier: Apache-2.0
// A guest to be saved, restored and moved: fills `fill=N` MiB of RAM, prints READY, and waits until a character comes on the
// console. With `write=N` it writes to N pages, of those it has filled, in each millisecond meanwhile, one after the other.
#include "tests/guest/lib/payload.h"

enum { kUartIntid = 33, kTimerIntid = 27, kRxEmpty = 1 << 4 };
enum { kReceive = 1 << 4, kReceiveTimeout = 1 << 6, kTimerOn = 1 };
enum { kPageBytes = 4096, kPagesOfMib = 256 };

static unsigned written_each_ms;
static size_t page_count;
static uint8_t* pages;

static void write_page(size_t page) {
  uint64_t* const words = (uint64_t*)(pages + page * kPageBytes);
  for (unsigned word = 0; word < kPageBytes / 8; ++word) {
    words[word] += 0x9e3779b97f4a7c15ULL * (page + word + 1);  // neither zeros, nor what it was
  }
}

static void interrupt_in_a_ms(void) {
  WRITE_SYSREG(cntv_cval_el0, now() + ticks_of_ms(1));
  WRITE_SYSREG(cntv_ctl_el0, kTimerOn);
}

static void take(unsigned intid) {
  static size_t next;
  if (intid == kUartIntid) {
    write32(kUart + UARTIMSC, 0);
    return;
  }
  for (unsigned count = 0; count < written_each_ms; ++count) {
    write_page(next++ % page_count);
  }
  interrupt_in_a_ms();
}

void payload_main(void) {
  written_each_ms = (unsigned)argument("write", 0);
  page_count = argument("fill", 1) * kPagesOfMib;
  pages = (uint8_t*)(((uintptr_t)_end + (2 << 20)) & ~(uintptr_t)(kPageBytes - 1));
  for (size_t page = 0; page < page_count; ++page) {
    write_page(page);
  }
  on_interrupt = take;
  gic_init();
  gic_enable(kUartIntid);
  write32(kUart + UARTIMSC, kReceive | kReceiveTimeout);
  if (written_each_ms != 0) {
    gic_enable(kTimerIntid);
    interrupt_in_a_ms();
  }
  print("READY\n");
  while ((read32(kUart + UARTFR) & kRxEmpty) != 0) {
    wait_for_interrupt();
    interrupts_on();
    interrupts_off();
  }
}
