// SPDX-License-Identifier: Apache-2.0
// What a payload is written with: a freestanding program at EL1, alone on the machine, MMU on (see mmu.c).
// A payload defines payload_main(); the library does the rest, from the first instruction to power-off.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxCpus = 128, kStackBytes = 8192 };

// ---- The machine at entry, and this CPU

// State that the boot protocol fixes, taken before anything was changed.
struct Entry {
  const void* dtb;
  uint64_t sctlr;
  uint64_t daif;
  uint64_t other_arguments;  // x1 | x2 | x3
};
extern struct Entry entry;

// An exception that was taken while it was expected.
struct Fault {
  bool taken;
  uint64_t esr;
  uint64_t far;
};

struct Cpu {
  uint64_t stack_top;  // start.S knows this offset
  unsigned index;
  uint64_t mpidr;  // affinity only
  void (*function)(void* argument);
  void* argument;
  volatile bool expects_fault;
  volatile struct Fault fault;
};

static inline struct Cpu* this_cpu(void) {
  struct Cpu* cpu;
  __asm__ volatile("mrs %0, tpidr_el1" : "=r"(cpu));
  return cpu;
}

// ---- Reporting: one line for each finding; the test program on the host reads them

// Each of these prints `PASS: area: text` or another verdict (with the argument quiet=1 only the bad ones); format as printf's %s %c %d %u %x %lu %lx %%.
void report(bool passed, const char* area, const char* format, ...) __attribute__((format(printf, 3, 4)));
void skip(const char* area, const char* format, ...) __attribute__((format(printf, 2, 3)));
void print(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Prints `EXIT n`, n being the number of failures, and powers the machine off. No return.
void finish(void) __attribute__((noreturn));
// Prints `EXIT n` without powering off: for payloads that end in another way.
void print_exit(void);

// What the payload does. Runs on the boot CPU, interrupts masked; finish() follows its return.
void payload_main(void);

// ---- Registers

#define READ_SYSREG(name)                                        \
  ({                                                             \
    uint64_t value_;                                             \
    __asm__ volatile("mrs %0, " #name : "=r"(value_)::"memory"); \
    value_;                                                      \
  })
#define WRITE_SYSREG(name, value)                                              \
  do {                                                                         \
    __asm__ volatile("msr " #name ", %0" ::"r"((uint64_t)(value)) : "memory"); \
    __asm__ volatile("isb" ::: "memory");                                      \
  } while (0)

static inline uint64_t field(uint64_t value, unsigned low_bit, unsigned width) {
  return (value >> low_bit) & ((1ULL << width) - 1);
}

#define DEFINE_MMIO(type, bits, width, suffix)                                                \
  static inline type read##bits(uintptr_t addr) {                                             \
    type value;                                                                               \
    __asm__ volatile("ldr" suffix " %" width "0, [%1]" : "=r"(value) : "r"(addr) : "memory"); \
    return value;                                                                             \
  }                                                                                           \
  static inline void write##bits(uintptr_t addr, type value) {                                \
    __asm__ volatile("str" suffix " %" width "0, [%1]" ::"r"(value), "r"(addr) : "memory");   \
  }
DEFINE_MMIO(uint8_t, 8, "w", "b")
DEFINE_MMIO(uint16_t, 16, "w", "h")
DEFINE_MMIO(uint32_t, 32, "w", "")
DEFINE_MMIO(uint64_t, 64, "x", "")

// ---- Exceptions

// Between these two an abort, an undefined instruction or an SError is noted instead of fatal; the
// instruction that took it is skipped.
void expect_fault(void);
struct Fault fault_taken(void);
// True for a synchronous external abort of this EL: what an access that no device answers may take.
bool is_external_abort(struct Fault fault);

static inline void interrupts_on(void) { __asm__ volatile("msr daifclr, #2" ::: "memory"); }
static inline void interrupts_off(void) { __asm__ volatile("msr daifset, #2" ::: "memory"); }
static inline void wait_for_interrupt(void) { __asm__ volatile("dsb sy\n\twfi" ::: "memory"); }

// ---- Memory: RAM is mapped one to one, cacheable; all else one to one as Device-nGnRnE

uint64_t ram_base(void);
uint64_t ram_bytes(void);
extern char _start[], _end[];
void mmu_enable(void);
// The same physical address seen as Device-nGnRnE, as Normal Non-cacheable or as Normal Write-Back memory. addr < 128 GiB.
static inline uintptr_t device_view(uint64_t addr) { return addr + (256ULL << 30); }
static inline uintptr_t normal_view(uint64_t addr) { return addr + (128ULL << 30); }
static inline uintptr_t cached_view(uint64_t addr) { return addr + (384ULL << 30); }

void* memset(void* to, int byte, size_t count);
void* memcpy(void* to, const void* from, size_t count);
int memcmp(const void* a, const void* b, size_t count);
size_t strlen(const char* text);

// ---- Time

uint64_t now(void);  // CNTVCT_EL0
uint64_t ticks_of_ms(uint64_t ms);
// Waits until `*flag` is not less than `least`, at most `ms`: a bound that only a hang reaches.
bool wait_until(const volatile unsigned* flag, unsigned least, uint64_t ms);

// ---- CPUs and PSCI

enum {
  PSCI_VERSION = 0x84000000,
  PSCI_CPU_OFF = 0x84000002,
  PSCI_MIGRATE_INFO_TYPE = 0x84000006,
  PSCI_SYSTEM_OFF = 0x84000008,
  PSCI_SYSTEM_RESET = 0x84000009,
  PSCI_FEATURES = 0x8400000a,
  PSCI_SYSTEM_RESET2 = 0x84000012,
};
#define PSCI_CPU_SUSPEND 0xc4000001UL
#define PSCI_CPU_ON 0xc4000003UL
#define PSCI_AFFINITY_INFO 0xc4000004UL
#define PSCI_SYSTEM_SUSPEND 0xc400000eUL
enum {
  PSCI_SUCCESS = 0,
  PSCI_NOT_SUPPORTED = -1,
  PSCI_INVALID_PARAMETERS = -2,
  PSCI_ALREADY_ON = -4,
  PSCI_INVALID_ADDRESS = -9,
};

// An SMCCC call by HVC; returns x0.
int64_t hvc(uint64_t function, uint64_t a1, uint64_t a2, uint64_t a3);
unsigned cpu_count(void);           // as the device tree says
uint64_t mpidr_of(unsigned index);  // as the device tree says
// Starts CPU `index` in `function`; returns PSCI's answer. The CPU idles when the function returns.
int64_t start_cpu(unsigned index, void (*function)(void* argument), void* argument);
void secondary_entry(void);

// ---- Device tree

enum { kNoNode = -1 };
// Offset of a node in the tree, or kNoNode.
int dt_find_compatible(const char* compatible, int after);
int dt_find_type(const char* device_type, int after);
int dt_find_path(const char* path);
int dt_find_phandle(uint32_t phandle);
int dt_next_node(int after);
const char* dt_name(int node);
int dt_parent(int node);
const void* dt_property(int node, const char* name, unsigned* bytes);
uint32_t dt_cell(const void* property, unsigned index);
uint64_t dt_two_cells(const void* property, unsigned index);
uint32_t dt_total_bytes(void);
// Value of NAME in a command line of `NAME=number` words; `otherwise` if there is none.
uint64_t argument(const char* name, uint64_t otherwise);
const char* command_line(void);

// ---- Interrupt controller (GICv2 or GICv3, as the device tree says) and UART

struct Gic {
  unsigned version;
  uintptr_t distributor;
  uintptr_t cpu_interface;   // GICv2
  uintptr_t redistributors;  // GICv3
};
extern struct Gic gic;
void gic_find(void);      // fills `gic`; touches nothing
void gic_init(void);      // once, on the boot CPU
void gic_init_cpu(void);  // on each CPU that takes interrupts
void gic_enable(unsigned intid);
void gic_disable(unsigned intid);
uintptr_t gic_redistributor(void);  // of this CPU
void gic_send_sgi(unsigned sgi, unsigned cpu_index);
// Called for each interrupt; level-triggered sources must be quiet when it returns.
extern void (*volatile on_interrupt)(unsigned intid);

// Its interrupt translation service, for up to 8 CPUs: LPI kFirstLpi + N goes to CPU N. One CPU at a time gives it commands.
enum { kFirstLpi = 8192 };
bool its_find(void);      // false: there is none
void its_init_cpu(void);  // on each CPU, before its_init; then the CPU takes LPIs
bool its_init(void);      // false: it does not take commands
bool its_send_lpi(unsigned cpu_index);

enum {
  kUart = 0x09000000,
  UARTDR = 0,
  UARTFR = 0x18,
  UARTIMSC = 0x38,
  UARTRIS = 0x3c,
  UARTICR = 0x44,
  UARTCR = 0x30,
  UARTLCR_H = 0x2c,
  UARTIFLS = 0x34
};
void uart_init(void);
void uart_put(char c);  // on one CPU at a time
int uart_get(void);     // next character, waiting for it
