// SPDX-License-Identifier: Apache-2.0
// Sends back what arrives on the UART, taken by interrupt, until it has seen `count=N` characters.
#include "tests/guest/lib/payload.h"

enum { kUartIntid = 33, kRxEmpty = 1 << 4, kTxFull = 1 << 5 };
enum { kReceive = 1 << 4, kReceiveTimeout = 1 << 6, kOverrun = 1 << 10 };
enum { kRingBytes = 1 << 17 };

static char ring[kRingBytes];
static volatile unsigned received;
static volatile unsigned overruns;

static void take_characters(unsigned intid) {
  if (intid != kUartIntid) {
    report(false, "uart", "interrupt %u", intid);
    return;
  }
  write32(kUart + UARTICR, kReceiveTimeout | kOverrun);
  while ((read32(kUart + UARTFR) & kRxEmpty) == 0) {
    const uint32_t character = read32(kUart + UARTDR);
    overruns += (character & 1 << 11) != 0;
    ring[received % kRingBytes] = (char)character;
    __atomic_store_n(&received, received + 1, __ATOMIC_RELEASE);
  }
}

void payload_main(void) {
  const unsigned count = (unsigned)argument("count", 0);
  on_interrupt = take_characters;
  gic_init();
  gic_enable(kUartIntid);
  write32(kUart + UARTIMSC, kReceive | kReceiveTimeout);
  print("READY\n");
  for (unsigned sent = 0; sent < count;) {
    while (sent == __atomic_load_n(&received, __ATOMIC_ACQUIRE)) {
      wait_for_interrupt();
      interrupts_on();
      interrupts_off();
    }
    interrupts_on();
    uart_put(ring[sent++ % kRingBytes]);
    interrupts_off();
  }
  print("\n");
  report(received == count, "uart", "%u characters arrived", received);
  report(overruns == 0, "uart", "none was lost");
}
