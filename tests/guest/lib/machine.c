// SPDX-License-Identifier: Apache-2.0
// The boot CPU's way to payload_main(), secondary CPUs, exceptions, time, and the C library's few functions.
#include "tests/guest/lib/payload.h"

enum { kClassUnknown = 0x00, kClassDataAbort = 0x25, kStatusExternalAbort = 0x10 };

// As start.S saves it.
struct Frame {
  uint64_t x[31];
  uint64_t elr;
  uint64_t spsr;
  uint64_t unused;
};

struct Entry entry;
void (*volatile on_interrupt)(unsigned intid);

static __attribute__((aligned(16))) char stacks[kMaxCpus][kStackBytes];
static struct Cpu cpus[kMaxCpus];

static struct Cpu first_cpu = {.stack_top = (uint64_t)(stacks[0] + kStackBytes)};
struct Cpu* boot_cpu = &first_cpu;

void gic_handle_interrupt(void);
void payload_start(const void* dtb, uint64_t sctlr, uint64_t daif, uint64_t other_arguments);
void secondary_start(struct Cpu* cpu);
void handle_exception(struct Frame* frame, unsigned kind);

static uint64_t own_affinity(void) { return READ_SYSREG(mpidr_el1) & 0xff00ffffffULL; }

void payload_start(const void* dtb, uint64_t sctlr, uint64_t daif, uint64_t other_arguments) {
  entry = (struct Entry){dtb, sctlr, daif, other_arguments};
  mmu_enable();
  this_cpu()->mpidr = own_affinity();
  uart_init();
  payload_main();
  finish();
}

void secondary_start(struct Cpu* cpu) {
  cpu->mpidr = own_affinity();
  cpu->function(cpu->argument);
}

int64_t hvc(uint64_t function, uint64_t a1, uint64_t a2, uint64_t a3) {
  register uint64_t x0 __asm__("x0") = function;
  register uint64_t x1 __asm__("x1") = a1;
  register uint64_t x2 __asm__("x2") = a2;
  register uint64_t x3 __asm__("x3") = a3;
  __asm__ volatile("hvc #0"
                   : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                   :
                   : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
                     "memory");
  return (int64_t)x0;
}

unsigned cpu_count(void) {
  unsigned count = 0;
  for (int node = dt_find_type("cpu", kNoNode); node != kNoNode; node = dt_find_type("cpu", node)) {
    ++count;
  }
  return count;
}

uint64_t mpidr_of(unsigned index) {
  int node = dt_find_type("cpu", kNoNode);
  while (index-- > 0 && node != kNoNode) {
    node = dt_find_type("cpu", node);
  }
  unsigned bytes = 0;
  const void* reg = node == kNoNode ? NULL : dt_property(node, "reg", &bytes);
  if (reg == NULL) {
    return UINT64_MAX;
  }
  return bytes == 8 ? dt_two_cells(reg, 0) : dt_cell(reg, 0);
}

int64_t start_cpu(unsigned index, void (*function)(void* argument), void* argument) {
  struct Cpu* cpu = &cpus[index];
  cpu->stack_top = (uint64_t)(stacks[index] + kStackBytes);
  cpu->index = index;
  cpu->function = function;
  cpu->argument = argument;
  __asm__ volatile("dc civac, %0\n\tdsb sy" ::"r"(cpu) : "memory");  // read with the MMU off
  return hvc(PSCI_CPU_ON, mpidr_of(index), (uint64_t)secondary_entry, (uint64_t)cpu);
}

void expect_fault(void) {
  struct Cpu* cpu = this_cpu();
  cpu->fault.taken = false;
  cpu->expects_fault = true;
  __asm__ volatile("dsb sy\n\tmsr daifclr, #4\n\tisb" ::: "memory");
}

struct Fault fault_taken(void) {
  __asm__ volatile("dsb sy\n\tisb\n\tmsr daifset, #4" ::: "memory");
  struct Cpu* cpu = this_cpu();
  cpu->expects_fault = false;
  return (struct Fault){cpu->fault.taken, cpu->fault.esr, cpu->fault.far};
}

bool is_external_abort(struct Fault fault) {
  return fault.taken && field(fault.esr, 26, 6) == kClassDataAbort && field(fault.esr, 0, 6) == kStatusExternalAbort;
}

void handle_exception(struct Frame* frame, unsigned kind) {
  enum { kSynchronous = 0, kIrq = 1, kSError = 3 };
  struct Cpu* cpu = this_cpu();
  if (kind == kIrq) {
    gic_handle_interrupt();
    return;
  }
  const uint64_t esr = READ_SYSREG(esr_el1);
  if (cpu->expects_fault && (kind == kSynchronous || kind == kSError)) {
    cpu->fault.esr = esr;
    cpu->fault.far = READ_SYSREG(far_el1);
    cpu->fault.taken = true;
    frame->elr += kind == kSynchronous ? 4 : 0;
    return;
  }
  report(false, "exception", "kind %u, esr %lx, far %lx, elr %lx (image at %lx), cpu %u", kind, esr,
         READ_SYSREG(far_el1), frame->elr, (uint64_t)_start, cpu->index);
  finish();
}

uint64_t now(void) {
  __asm__ volatile("isb" ::: "memory");
  return READ_SYSREG(cntvct_el0);
}

uint64_t ticks_of_ms(uint64_t ms) { return READ_SYSREG(cntfrq_el0) * ms / 1000; }

bool wait_until(const volatile unsigned* flag, unsigned least, uint64_t ms) {
  const uint64_t end = now() + ticks_of_ms(ms);
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < least) {
    if (now() > end) {
      return false;
    }
  }
  return true;
}

void* memset(void* to, int byte, size_t count) {
  char* bytes = to;
  while (count-- > 0) {
    *bytes++ = (char)byte;
  }
  return to;
}

void* memcpy(void* to, const void* from, size_t count) {
  char* out = to;
  const char* in = from;
  while (count-- > 0) {
    *out++ = *in++;
  }
  return to;
}

int memcmp(const void* a, const void* b, size_t count) {
  const unsigned char* left = a;
  const unsigned char* right = b;
  for (; count > 0; --count, ++left, ++right) {
    if (*left != *right) {
      return *left - *right;
    }
  }
  return 0;
}

size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') {
    ++length;
  }
  return length;
}
