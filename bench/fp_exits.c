// SPDX-License-Identifier: Apache-2.0
// A payload that times exits of a vCPU which uses FP registers more or less: for scripts/bench fp. For each kind of exit and of
// use it prints `exits EXIT/USE COUNT TICKS` for two counts: their difference is free of what surrounds the loop. Then it prints
// DONE and waits for a character, so that the host's counters can be read. Before all that it prints `frequency HZ`, of its counter. With `spin=N` it prints `spin USE N TICKS` instead,
// the time that N rounds of a loop without exits take, in which somebody else may want the CPU.
#include "tests/guest/lib/payload.h"

enum { kRtc = 0x09010000, RTCPeriphID0 = 0xfe0, GICD_TYPER = 4 };
enum { kFew = 256, kMany = 2304, kPerBurst = 256, kPing = 1, kPong = 2, kMsToStart = 200000 };
enum { kSveField = 32, kFpTrap = 0x300000, kZenTrap = 0x30000 };

enum Use { kNoFp, kEvery, kTenth, kBursts, kSve, kUses };
static const char* const use_names[] = {"none", "every", "tenth", "bursts", "sve"};

static volatile unsigned pongs;
static volatile unsigned rounds;
static volatile enum Use used;
static volatile unsigned ready;

static inline void use_fp(void) { __asm__ volatile("fadd v0.2d, v0.2d, v1.2d" ::: "memory"); }

static inline void use_sve(void) {
  __asm__ volatile(".arch_extension sve\n\tptrue p0.b\n\tadd z0.b, z0.b, z1.b\n\t.arch_extension nosve" ::: "memory");
}

// What the code between two exits does with the registers.
static inline void use(enum Use kind, unsigned round) {
  switch (kind) {
    case kEvery:
      use_fp();
      break;
    case kTenth:
      if (round % 10 == 0) {
        use_fp();
      }
      break;
    case kBursts:
      if (round / kPerBurst % 2 == 0) {
        use_fp();
      }
      break;
    case kSve:
      use_sve();
      break;
    default:
      break;
  }
}

static bool has_sve(void) { return field(READ_SYSREG(ID_AA64PFR0_EL1), kSveField, 4) != 0; }

static void enable_fp(void) { WRITE_SYSREG(CPACR_EL1, READ_SYSREG(CPACR_EL1) | kFpTrap | (has_sve() ? kZenTrap : 0)); }

// ---- The kinds of exit

// Answered by the VMM: the vCPU's thread returns to user space.
static void exit_to_vmm(enum Use kind, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    use(kind, i);
    read32(kRtc + RTCPeriphID0);
  }
}

// Answered by KVM, at once.
static void exit_to_kvm(enum Use kind, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    use(kind, i);
    read32(gic.distributor + GICD_TYPER);
  }
}

static void take_interrupt(unsigned intid) {
  if (intid == kPong) {
    pongs += 1;
  } else if (intid == kPing) {
    use(used, rounds);
    gic_send_sgi(kPong, 0);
  }
}

// To the other vCPU and back; each waits in WFI meanwhile, so both threads sleep and wake up.
static void ping_pong(enum Use kind, unsigned count) {
  used = kind;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned before = pongs;
    rounds = i;
    use(kind, i);
    gic_send_sgi(kPing, 1);
    for (;;) {
      interrupts_off();
      if (pongs != before) {
        break;
      }
      wait_for_interrupt();
      interrupts_on();
    }
    interrupts_on();
  }
}

static void serve(void* unused) {
  (void)unused;
  enable_fp();
  gic_init_cpu();
  gic_enable(kPing);
  interrupts_on();
  __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  for (;;) {
    wait_for_interrupt();
  }
}

// ---- What is measured

static void time_exits(const char* name, void (*exits)(enum Use kind, unsigned count)) {
  for (enum Use kind = kNoFp; kind < kUses; ++kind) {
    if (kind == kSve && !has_sve()) {
      continue;
    }
    exits(kind, kFew);  // what is adaptive has adapted
    for (unsigned count = kFew; count <= kMany; count += kMany - kFew) {
      const uint64_t start = now();
      exits(kind, count);
      print("exits %s/%s %u %lu\n", name, use_names[kind], count, now() - start);
    }
  }
}

static void time_spins(uint64_t count) {
  for (enum Use kind = kNoFp; kind < kUses; ++kind) {
    if (kind == kTenth || kind == kBursts || (kind == kSve && !has_sve())) {
      continue;  // a round is much shorter than the time between two preemptions
    }
    const uint64_t start = now();
    for (uint64_t i = 0; i < count; ++i) {
      use(kind, 0);
      for (volatile unsigned pause = 0; pause < 100; ++pause) {
      }
    }
    print("spin %s %lu %lu\n", use_names[kind], count, now() - start);
  }
}

void payload_main(void) {
  const uint64_t spins = argument("spin", 0);
  enable_fp();
  print("frequency %lu\n", READ_SYSREG(CNTFRQ_EL0));
  if (spins != 0) {
    time_spins(spins);
    return;
  }
  on_interrupt = take_interrupt;
  gic_init();
  gic_enable(kPong);
  interrupts_on();
  time_exits("vmm", exit_to_vmm);
  time_exits("kvm", exit_to_kvm);
  if (cpu_count() > 1) {
    start_cpu(1, serve, NULL);
    report(wait_until(&ready, 1, kMsToStart), "fp", "the other CPU is up");
    time_exits("wfi", ping_pong);
  }
  print("DONE\n");
  uart_get();
}
