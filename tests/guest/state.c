// SPDX-License-Identifier: Apache-2.0
// All that a CPU and its interrupt controller hold must be the same after the machine was saved and restored, or moved. Each
// CPU fills its registers and waits in a loop that touches two of them: the boot CPU for a character on the console, the
// others for a word in RAM. Prints READY once all of them wait.
#include "tests/guest/lib/payload.h"

enum { kMsToArrive = 200000, kMsToTake = 200000 };
enum { kSgi = 3, kSpi = 32 + 140, kVirtualTimer = 27 };
enum { GICD_ISPENDR = 0x200, GICD_ICFGR = 0xc00 };
enum { kTimerOn = 1, kTimerMasked = 2 };
enum { kMostZBytes = 256, kGprs = 29, kPage = 4096 };
static const uint64_t kPstateFlags = 0xa0000000;
static const uint64_t kRamSeed = 0x9e3779b97f4a7c15ULL;

// What the code below loads and stores; it knows the offsets.
struct Registers {
  uint64_t x[32];                  // x2..x30 are used
  uint64_t nzcv;                   // 256
  uint64_t fpcr;                   // 264
  uint64_t fpsr;                   // 272
  uint64_t unused;                 // 280
  uint8_t v[32][16];               // 288
  uint8_t p[17][kMostZBytes / 8];  // 800; the last one is FFR
  uint8_t z[32][kMostZBytes];      // 1344
} __attribute__((aligned(64)));

void hold_base(const struct Registers* pattern, struct Registers* found, uintptr_t flag);
void hold_sve(const struct Registers* pattern, struct Registers* found, uintptr_t flag);

// hold_…(x0: pattern, x1: found, x2: address of a word): fills the registers, waits until bit 4 of the word is clear, and stores
// what is in the registers then. Only x0 and x1 are used meanwhile, and neither the flags nor FP are touched.
#define EACH_OF_16 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define EACH_OF_32 EACH_OF_16 ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
__asm__(
    ".arch armv8.2-a+sve\n"
    ".macro each_pair op\n"
    "  \\op x2, x3, [x0, #16]\n  \\op x4, x5, [x0, #32]\n  \\op x6, x7, [x0, #48]\n"
    "  \\op x8, x9, [x0, #64]\n  \\op x10, x11, [x0, #80]\n  \\op x12, x13, [x0, #96]\n"
    "  \\op x14, x15, [x0, #112]\n  \\op x16, x17, [x0, #128]\n  \\op x18, x19, [x0, #144]\n"
    "  \\op x20, x21, [x0, #160]\n  \\op x22, x23, [x0, #176]\n  \\op x24, x25, [x0, #192]\n"
    "  \\op x26, x27, [x0, #208]\n  \\op x28, x29, [x0, #224]\n"
    ".endm\n"
    ".macro enter\n"
    "  sub sp, sp, #112\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n  stp x1, x2, [sp, #96]\n"
    "  ldp x4, x5, [x0, #256]\n  msr nzcv, x4\n  msr fpcr, x5\n  ldr x4, [x0, #272]\n  msr fpsr, x4\n"
    ".endm\n"
    ".macro hold\n"
    "  ldr x30, [x0, #240]\n"
    "  each_pair ldp\n"
    "  ldr x0, [sp, #104]\n"
    "1: ldr w1, [x0]\n"
    "  tbnz w1, #4, 1b\n"
    "  ldr x0, [sp, #96]\n"
    "  str x30, [x0, #240]\n"
    "  each_pair stp\n"
    "  mrs x1, nzcv\n  mrs x2, fpcr\n  stp x1, x2, [x0, #256]\n  mrs x1, fpsr\n  str x1, [x0, #272]\n"
    ".endm\n"
    ".macro leave\n"
    "  msr fpcr, xzr\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  add sp, sp, #112\n  ret\n"
    ".endm\n"
    ".text\n.global hold_base\nhold_base:\n"
    "  enter\n"
    "  add x4, x0, #288\n"
    "  .irp n, " EACH_OF_32
    "\n  ldr q\\n, [x4], #16\n  .endr\n"
    "  hold\n"
    "  add x1, x0, #288\n"
    "  .irp n, " EACH_OF_32
    "\n  str q\\n, [x1], #16\n  .endr\n"
    "  leave\n"
    ".global hold_sve\nhold_sve:\n"
    "  enter\n"
    "  add x4, x0, #800\n"
    "  ldr p0, [x4, #16, mul vl]\n"
    "  wrffr p0.b\n"
    "  .irp n, " EACH_OF_16
    "\n  ldr p\\n, [x4, #\\n, mul vl]\n  .endr\n"
    "  add x4, x0, #1344\n"
    "  .irp n, " EACH_OF_32
    "\n  ldr z\\n, [x4, #\\n, mul vl]\n  .endr\n"
    "  hold\n"
    "  add x1, x0, #800\n"
    "  .irp n, " EACH_OF_16
    "\n  str p\\n, [x1, #\\n, mul vl]\n  .endr\n"
    "  rdffr p0.b\n"
    "  str p0, [x1, #16, mul vl]\n"
    "  add x1, x0, #1344\n"
    "  .irp n, " EACH_OF_32
    "\n  str z\\n, [x1, #\\n, mul vl]\n  .endr\n"
    "  leave\n");

// System registers that hold what is written, or a part of it, and that nothing here depends on.
#define EACH_SYSTEM_REGISTER(f)                                                                                       \
  f(tpidr_el0) f(tpidrro_el0) f(contextidr_el1) f(par_el1) f(afsr0_el1) f(afsr1_el1) f(esr_el1) f(far_el1) f(elr_el1) \
      f(spsr_el1) f(sp_el0) f(amair_el1) f(cntkctl_el1) f(csselr_el1) f(ttbr1_el1) f(dbgbvr0_el1) f(dbgwvr0_el1)      \
          f(cntv_cval_el0) f(cntp_cval_el0)
// Those that everything here depends on: only looked at.
#define EACH_VITAL_REGISTER(f)                                                                                    \
  f(sctlr_el1) f(tcr_el1) f(ttbr0_el1) f(mair_el1) f(vbar_el1) f(cpacr_el1) f(tpidr_el1) f(mpidr_el1) f(midr_el1) \
      f(ctr_el0)
#define COUNT_ONE(name) +1
enum { kSystemRegisters = 0 EACH_SYSTEM_REGISTER(COUNT_ONE) EACH_VITAL_REGISTER(COUNT_ONE) };

static void read_system_registers(uint64_t* out) {
#define READ_ONE(name) *out++ = READ_SYSREG(name);
  EACH_SYSTEM_REGISTER(READ_ONE) EACH_VITAL_REGISTER(READ_ONE)
}

static const char* const kNames[] = {
#define NAME_ONE(name) #name,
    EACH_SYSTEM_REGISTER(NAME_ONE) EACH_VITAL_REGISTER(NAME_ONE)};

enum { kMostCpus = 8 };
static struct Registers patterns[kMostCpus], found[kMostCpus];
static volatile unsigned waiting, done;
static volatile uint32_t stay = 1U << 4;
static volatile unsigned sgis[kMostCpus], spis, lpis[kMostCpus], timers[kMostCpus], strays;
static bool has_its;
static uint64_t counter_before[kMostCpus];

static bool has_sve(void) { return field(READ_SYSREG(id_aa64pfr0_el1), 32, 4) != 0; }

static uint64_t vector_bytes(void) {
  uint64_t bytes;
  __asm__ volatile(".arch armv8.2-a+sve\n\trdvl %0, #1" : "=r"(bytes));
  return bytes;
}

static void enable_sve(void) {
  const uint64_t kFpAndSve = 0x33ULL << 16;
  WRITE_SYSREG(cpacr_el1, kFpAndSve);
  WRITE_SYSREG(S3_0_C1_C2_0, 0xf);  // ZCR_EL1: the longest vectors
}

static void fill(struct Registers* registers, unsigned cpu) {
  uint8_t* bytes = (uint8_t*)registers;
  for (size_t at = 0; at < sizeof *registers; ++at) {
    bytes[at] = (uint8_t)(at * 7 + at / 251 + 13 * cpu + 1);
  }
  registers->nzcv = kPstateFlags;
  registers->fpcr = 1ULL << 25 | 1ULL << 24;  // DN, FZ
  registers->fpsr = 1ULL << 27 | 0x9;         // QC, IXC…
  const uint64_t p_bytes = has_sve() ? vector_bytes() / 8 : sizeof registers->p[0];
  uint8_t* ffr = &registers->p[0][0] + 16 * p_bytes;  // what it may hold: ones below zeros
  memset(ffr, 0, p_bytes);
  *ffr = 0x7f;
}

static void fill_system_registers(unsigned cpu) {
  uint64_t value = 0x123456789abcdef0ULL + 0x1111 * cpu;
#define WRITE_ONE(name)      \
  WRITE_SYSREG(name, value); \
  value = value * 5 + 0x1357;
  EACH_SYSTEM_REGISTER(WRITE_ONE)
  WRITE_SYSREG(csselr_el1, 0);
  WRITE_SYSREG(cntkctl_el1, 3);
  WRITE_SYSREG(ttbr1_el1, 0x40000000);
  WRITE_SYSREG(spsr_el1, 0x3c5);
  WRITE_SYSREG(cntv_cval_el0, now() + ticks_of_ms(1000000000));
  WRITE_SYSREG(cntp_cval_el0, now() + ticks_of_ms(2000000000));
  WRITE_SYSREG(cntv_ctl_el0, kTimerOn);
  WRITE_SYSREG(cntp_ctl_el0, kTimerOn | kTimerMasked);
}

static void check_registers(unsigned cpu) {
  const struct Registers* was = &patterns[cpu];
  const struct Registers* is = &found[cpu];
  report(memcmp(&was->x[2], &is->x[2], kGprs * 8) == 0, "state", "CPU %u: x2 to x30", cpu);
  report(was->nzcv == is->nzcv && was->fpcr == is->fpcr && was->fpsr == is->fpsr, "state",
         "CPU %u: NZCV %lx, FPCR %lx, FPSR %lx", cpu, is->nzcv, is->fpcr, is->fpsr);
  if (!has_sve()) {
    report(memcmp(was->v, is->v, sizeof was->v) == 0, "state", "CPU %u: V0 to V31", cpu);
    return;
  }
  const uint64_t z_bytes = vector_bytes();
  report(memcmp(was->z, is->z, 32 * z_bytes) == 0, "state", "CPU %u: Z0 to Z31, %lu bytes each", cpu, z_bytes);
  report(memcmp(was->p, is->p, 16 * z_bytes / 8) == 0, "state", "CPU %u: P0 to P15", cpu);
  report(memcmp((const uint8_t*)was->p + 16 * z_bytes / 8, (const uint8_t*)is->p + 16 * z_bytes / 8, z_bytes / 8) == 0,
         "state", "CPU %u: FFR", cpu);
}

static void check_system_registers(unsigned cpu, const uint64_t* before, const uint64_t* after) {
  unsigned changed = 0;
  for (unsigned index = 0; index < kSystemRegisters; ++index) {
    if (before[index] != after[index]) {
      report(false, "state", "CPU %u: %s was %lx, is %lx", cpu, kNames[index], before[index], after[index]);
      ++changed;
    }
  }
  report(changed == 0, "state", "CPU %u: %u system registers", cpu, (unsigned)kSystemRegisters);
}

static void take(unsigned intid) {
  const unsigned cpu = this_cpu()->index;
  if (intid == kSgi) {
    __atomic_add_fetch(&sgis[cpu], 1, __ATOMIC_RELEASE);
  } else if (intid == kSpi && cpu == 0) {
    __atomic_add_fetch(&spis, 1, __ATOMIC_RELEASE);
  } else if (intid == kFirstLpi + cpu) {
    __atomic_add_fetch(&lpis[cpu], 1, __ATOMIC_RELEASE);
  } else if (intid == kVirtualTimer) {
    WRITE_SYSREG(cntv_ctl_el0, 0);
    __atomic_add_fetch(&timers[cpu], 1, __ATOMIC_RELEASE);
  } else {
    __atomic_add_fetch(&strays, 1, __ATOMIC_RELEASE);
  }
}

// Interrupts are masked until the machine goes on: what is pending then is taken exactly once.
static void check_interrupts(unsigned cpu) {
  const uint64_t counter = now();
  report(counter >= counter_before[cpu], "state", "CPU %u: the counter went from %lu to %lu", cpu, counter_before[cpu],
         counter);
  report((READ_SYSREG(cntv_ctl_el0) & 7) == kTimerOn && (READ_SYSREG(cntp_ctl_el0) & 7) == (kTimerOn | kTimerMasked),
         "state", "CPU %u: the timers run and are not due", cpu);
  interrupts_on();
  report(wait_until(&sgis[cpu], 1, kMsToTake), "state", "CPU %u: the pending SGI is taken", cpu);
  if (cpu == 0) {
    report(wait_until(&spis, 1, kMsToTake), "state", "the pending SPI is taken");
  }
  if (has_its) {
    report(wait_until(&lpis[cpu], 1, kMsToTake), "state", "CPU %u: the pending LPI is taken", cpu);
    report(lpis[cpu] == 1, "state", "CPU %u: the LPI is not taken twice", cpu);
    report(its_send_lpi(cpu) && wait_until(&lpis[cpu], 2, kMsToTake), "state", "CPU %u: the ITS still translates", cpu);
  }
  WRITE_SYSREG(cntv_cval_el0, now() + ticks_of_ms(1));
  report(wait_until(&timers[cpu], 1, kMsToTake), "state", "CPU %u: its timer still interrupts", cpu);
  report(sgis[cpu] == 1 && timers[cpu] == 1 && spis <= 1, "state", "CPU %u: nothing is taken twice", cpu);
}

static uint64_t before[kMostCpus][kSystemRegisters], after[kMostCpus][kSystemRegisters];

// One for each CPU, which stays pending: all of them mask interrupts.
static void send_lpis(void) {
  bool sent = !has_its || its_init();
  for (unsigned cpu = 0; has_its && cpu < cpu_count(); ++cpu) {
    sent = sent && its_send_lpi(cpu);
  }
  report(sent, "state", "the ITS takes commands");
}

static void hold(unsigned cpu, uintptr_t flag) {
  fill(&patterns[cpu], cpu);
  fill_system_registers(cpu);
  read_system_registers(before[cpu]);
  counter_before[cpu] = now();
  __atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
  if (cpu == 0) {
    wait_until(&waiting, cpu_count(), kMsToArrive);
    send_lpis();
    print("READY\n");
  }
  if (has_sve()) {
    hold_sve(&patterns[cpu], &found[cpu], flag);
  } else {
    hold_base(&patterns[cpu], &found[cpu], flag);
  }
  read_system_registers(after[cpu]);
}

static void be_held(void* unused) {
  (void)unused;
  const unsigned cpu = this_cpu()->index;
  if (has_sve()) {
    enable_sve();
  }
  gic_init_cpu();
  if (has_its) {
    its_init_cpu();
  }
  gic_enable(kSgi);
  gic_enable(kVirtualTimer);
  gic_send_sgi(kSgi, cpu);
  hold(cpu, (uintptr_t)&stay);
  while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < cpu) {  // one after the other: their reports are lines
  }
  check_registers(cpu);
  check_system_registers(cpu, before[cpu], after[cpu]);
  check_interrupts(cpu);
  __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
}

static uint64_t ram_word(uint64_t addr) { return (addr ^ kRamSeed) * kRamSeed; }

// Fills, or compares, words of the pages that neither the program nor the device tree is in; every fourth page stays zero.
static unsigned long walk_ram(bool writes) {
  const uint64_t tree = (uint64_t)entry.dtb & ~(uint64_t)(kPage - 1);
  const uint64_t tree_end = (uint64_t)entry.dtb + dt_total_bytes();
  unsigned long wrong = 0;
  uint64_t page = ((uint64_t)_end + kPage - 1) & ~(uint64_t)(kPage - 1);
  for (unsigned index = 0; page < ram_base() + ram_bytes(); page += kPage, ++index) {
    if (index % 4 == 3 || (page + kPage > tree && page < tree_end)) {
      continue;
    }
    const uint64_t step = index % 64 == 0 ? 8 : 4088;
    for (uint64_t addr = page; addr < page + kPage; addr += step) {
      if (writes) {
        write64(addr, ram_word(addr));
      } else {
        wrong += read64(addr) != ram_word(addr);
      }
    }
  }
  return wrong;
}

void payload_main(void) {
  on_interrupt = take;
  if (has_sve()) {
    enable_sve();
  }
  gic_init();
  has_its = its_find();
  if (has_its) {
    its_init_cpu();
  }
  gic_enable(kSgi);
  gic_enable(kVirtualTimer);
  const uintptr_t config = gic.distributor + GICD_ICFGR + 4 * (kSpi / 16);
  write32(config, read32(config) | 2U << 2 * (kSpi % 16));  // edge-triggered
  gic_enable(kSpi);
  walk_ram(true);
  for (unsigned index = 1; index < cpu_count(); ++index) {
    if (start_cpu(index, be_held, NULL) != PSCI_SUCCESS) {
      report(false, "state", "CPU %u does not start", index);
      return;
    }
  }
  gic_send_sgi(kSgi, 0);
  write32(gic.distributor + GICD_ISPENDR + 4 * (kSpi / 32), 1U << kSpi % 32);
  hold(0, kUart + UARTFR);  // until its bit 4, "receive FIFO empty", is clear
  check_registers(0);
  check_system_registers(0, before[0], after[0]);
  check_interrupts(0);
  stay = 0;
  done = 1;
  report(wait_until(&done, cpu_count(), kMsToTake), "state", "%u CPUs went on", cpu_count());
  const unsigned long wrong = walk_ram(false);
  report(wrong == 0, "state", "RAM: %lu words differ", wrong);
  report(strays == 0, "state", "no other interrupt came");
}
