// SPDX-License-Identifier: Apache-2.0
// Takes what arrives on the UART by interrupt, `count=N` characters, and prints `RECEIVED count sum`.
#include "tests/guest/lib/payload.h"

enum { kUartIntid = 33, kRxEmpty = 1 << 4, kOverrunError = 1 << 11 };
enum { kReceive = 1 << 4, kReceiveTimeout = 1 << 6, kOverrun = 1 << 10 };

static volatile unsigned received;
static volatile uint32_t sum;
static volatile unsigned overruns;

static void take_characters(unsigned intid) {
  if (intid != kUartIntid) {
    report(false, "uart", "interrupt %u", intid);
    return;
  }
  write32(kUart + UARTICR, kReceiveTimeout | kOverrun);
  while ((read32(kUart + UARTFR) & kRxEmpty) == 0) {
    const uint32_t character = read32(kUart + UARTDR);
    overruns += (character & kOverrunError) != 0;
    sum = sum * 31 + (character & 0xff);
    received += 1;
  }
}

void payload_main(void) {
  const unsigned count = (unsigned)argument("count", 0);
  on_interrupt = take_characters;
  gic_init();
  gic_enable(kUartIntid);
  print("READY\n");
  write32(kUart + UARTIMSC, kReceive | kReceiveTimeout);
  while (received < count) {
    wait_for_interrupt();
    interrupts_on();
    interrupts_off();
  }
  write32(kUart + UARTIMSC, 0);
  print("RECEIVED %u %u\n", received, sum);
  report(overruns == 0, "uart", "no overrun");
}
