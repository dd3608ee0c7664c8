// SPDX-License-Identifier: Apache-2.0
// The console and what is said on it.
#include <stdarg.h>

#include "tests/guest/lib/payload.h"

enum {
  kTxEmpty = 1 << 7,
  kTxFifoDepth = 16,
  kRxEmpty = 1 << 4,
  kFifosOn = 1 << 4,
  kEightBits = 3 << 5,
  kUartTxRxOn = 0x301
};

static unsigned failures;
static unsigned lock;
static unsigned fifo_room;

static void take_lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0) {
  }
}

static void release_lock(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

void uart_init(void) {
  write32(kUart + UARTIMSC, 0);
  write32(kUart + UARTLCR_H, kEightBits | kFifosOn);
  write32(kUart + UARTCR, kUartTxRxOn);
}

// Looks at the flags once for each FIFO full of characters: an access is slow where machines are emulated.
void uart_put(char c) {
  if (fifo_room == 0) {
    while ((read32(kUart + UARTFR) & kTxEmpty) == 0) {
    }
    fifo_room = kTxFifoDepth;
  }
  --fifo_room;
  write32(kUart + UARTDR, (uint8_t)c);
}

int uart_get(void) {
  while ((read32(kUart + UARTFR) & kRxEmpty) != 0) {
  }
  return (int)(read32(kUart + UARTDR) & 0xff);
}

static void put_text(const char* text) {
  for (; *text != '\0'; ++text) {
    uart_put(*text);
  }
}

static void put_number(uint64_t value, unsigned base) {
  char digits[24];
  unsigned count = 0;
  do {
    digits[count++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  while (count > 0) {
    uart_put(digits[--count]);
  }
}

static void put_signed(int64_t value) {
  if (value < 0) {
    uart_put('-');
  }
  put_number(value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

// Prints one conversion; `format` points behind the percent sign. Returns what is behind the conversion.
static const char* put_conversion(const char* format, va_list* arguments) {
  bool is_long = false;
  for (; *format == 'l'; ++format) {
    is_long = true;
  }
  switch (*format) {
    case 's':
      put_text(va_arg(*arguments, const char*));
      break;
    case 'c':
      uart_put((char)va_arg(*arguments, int));
      break;
    case 'd':
      put_signed(is_long ? va_arg(*arguments, int64_t) : va_arg(*arguments, int));
      break;
    case 'u':
      put_number(is_long ? va_arg(*arguments, uint64_t) : va_arg(*arguments, unsigned), 10);
      break;
    case 'x':
      put_number(is_long ? va_arg(*arguments, uint64_t) : va_arg(*arguments, unsigned), 16);
      break;
    case '%':
      uart_put('%');
      break;
    default:
      uart_put('%');
      return format;
  }
  return format + 1;
}

static void put_formatted(const char* format, va_list* arguments) {
  while (*format != '\0') {
    if (*format == '%') {
      format = put_conversion(format + 1, arguments);
    } else {
      uart_put(*format++);
    }
  }
}

static void put_verdict(const char* verdict, const char* area, const char* format, va_list* arguments) {
  take_lock();
  put_text(verdict);
  put_text(area);
  put_text(": ");
  put_formatted(format, arguments);
  uart_put('\n');
  release_lock();
}

void report(bool passed, const char* area, const char* format, ...) {
  va_list arguments;
  if (passed && argument("quiet", 0) != 0) {
    return;
  }
  va_start(arguments, format);
  if (!passed) {
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
  }
  put_verdict(passed ? "PASS: " : "FAIL: ", area, format, &arguments);
  va_end(arguments);
}

void skip(const char* area, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_verdict("SKIP: ", area, format, &arguments);
  va_end(arguments);
}

void print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  take_lock();
  put_formatted(format, &arguments);
  release_lock();
  va_end(arguments);
}

void print_exit(void) { print("EXIT %u\n", failures); }

void finish(void) {
  print_exit();
  hvc(PSCI_SYSTEM_OFF, 0, 0, 0);
  for (;;) {
    wait_for_interrupt();
  }
}
