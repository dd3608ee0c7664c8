// SPDX-License-Identifier: Apache-2.0
// A payload that times accesses to device registers which only the VMM answers. For each access it prints
// `exits NAME COUNT TICKS` for two counts: their difference is free of what surrounds the loop. The devices are where
// QEMU's virt board has them too.
#include "tests/guest/lib/payload.h"

enum { kRtc = 0x09010000, RTCIMSC = 0x10, RTCPeriphID0 = 0xfe0, UARTPeriphID0 = 0xfe0 };
enum { kFewAccesses = 200, kManyAccesses = 2200 };

static uint64_t time_reads(uintptr_t addr, unsigned count) {
  const uint64_t start = now();
  for (unsigned i = 0; i < count; ++i) {
    read32(addr);
  }
  return now() - start;
}

static uint64_t time_writes(uintptr_t addr, unsigned count) {
  const uint64_t start = now();
  for (unsigned i = 0; i < count; ++i) {
    write32(addr, 0);
  }
  return now() - start;
}

static void print_times(const char* name, uint64_t (*measure)(uintptr_t addr, unsigned count), uintptr_t addr) {
  static const unsigned counts[] = {kFewAccesses, kManyAccesses};
  for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
    print("exits %s %u %lu\n", name, counts[i], measure(addr, counts[i]));
  }
}

void payload_main(void) {
  print_times("pl011-read", time_reads, kUart + UARTPeriphID0);
  print_times("pl011-write", time_writes, kUart + UARTIMSC);
  print_times("pl031-read", time_reads, kRtc + RTCPeriphID0);
  print_times("pl031-write", time_writes, kRtc + RTCIMSC);
}
