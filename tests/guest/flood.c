// SPDX-License-Identifier: Apache-2.0
// Prints `count=N` characters, whether or not anybody reads them.
#include "tests/guest/lib/payload.h"

void payload_main(void) {
  enum { kLine = 64 };
  const uint64_t count = argument("count", 0);
  for (uint64_t printed = 0; printed < count; ++printed) {
    uart_put(printed % kLine == kLine - 1 ? '\n' : '.');
  }
  report(true, "flood", "%lu characters", count);
}
