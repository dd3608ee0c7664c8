// SPDX-License-Identifier: Apache-2.0
// Every boot must look like the first. Leaves the machine dirty, then does what a character on the console
// says: r SYSTEM_RESET, 2 SYSTEM_RESET2 (architectural), v SYSTEM_RESET2 (vendor type), a SYSTEM_RESET by all other
// CPUs while this one takes external aborts, q power off.
#include "tests/guest/lib/payload.h"

enum { kMsToStart = 200000, kUartIntid = 33, kVirtualTimer = 27 };
enum { GICD_CTLR = 0x0, GICD_IGROUPR = 0x80, GICD_ISENABLER = 0x100, GICD_ISPENDR = 0x200, GICD_IPRIORITYR = 0x400 };
enum { GICD_ICFGR = 0xc00, GICC_PMR = 0x4, GICR_SGI_FRAME = 0x10000 };
enum { kGroupsEnabled = 3, kTimerOn = 1 };
static const uint32_t kPpis = 0xffff0000;

#define VENDOR_RESET 0x80000000UL

static volatile unsigned boots_seen_by_image;  // in .data: loaded afresh at each boot
static volatile unsigned marker = 0x1234;
static volatile unsigned others;
static volatile bool others_reset;

static void be_busy(void* unused) {
  (void)unused;
  gic_init_cpu();
  gic_enable(kVirtualTimer);
  WRITE_SYSREG(cntv_cval_el0, now());
  WRITE_SYSREG(cntv_ctl_el0, kTimerOn);
  __atomic_add_fetch(&others, 1, __ATOMIC_RELEASE);
  for (;;) {
    (void)read32(kUart + UARTFR);  // an exit to the VMM each time: it must not enter this CPU again after a reset
    if (others_reset) {
      hvc(PSCI_SYSTEM_RESET, 0, 0, 0);
    }
  }
}

static void check_entry(void) {
  report(boots_seen_by_image == 0 && marker == 0x1234, "reset", "the image is as it was loaded");
  report((entry.sctlr & 1) == 0 && field(entry.daif, 6, 4) == 0xf && entry.other_arguments == 0, "reset",
         "the CPU is as the boot protocol says");
  report((READ_SYSREG(cntv_ctl_el0) & kTimerOn) == 0, "reset", "the virtual timer is off");
  report(hvc(PSCI_AFFINITY_INFO, mpidr_of(cpu_count() - 1), 0, 0) == (cpu_count() > 1 ? 1 : 0), "reset",
         "the other CPUs are off");
}

static void check_gic(void) {
  const uint32_t ctlr = read32(gic.distributor + GICD_CTLR);
  report((ctlr & kGroupsEnabled) == 0, "reset", "the distributor is disabled: %x", ctlr);
  report(read32(gic.distributor + GICD_ISENABLER + 4) == 0, "reset", "no SPI is enabled");
  report(read32(gic.distributor + GICD_ISPENDR + 4) == 0, "reset", "no SPI is pending");
  if (gic.version == 3) {
    const uintptr_t bank = gic_redistributor() + GICR_SGI_FRAME;
    report((read32(bank + GICD_ISENABLER) & kPpis) == 0, "reset", "no PPI is enabled");
    report(read32(bank + GICD_ISPENDR) == 0, "reset", "no PPI or SGI is pending");
  }
}

// What must be the same at each boot, whatever it is; the test on the host compares the lines.
static void print_state(void) {
  const uintptr_t bank = gic.version == 3 ? gic_redistributor() + GICR_SGI_FRAME : gic.distributor;
  print("STATE cpu %lx %lx %lx %lx", entry.sctlr, entry.daif, READ_SYSREG(cntkctl_el1), READ_SYSREG(mdscr_el1));
  print(" timer %lx %lx", READ_SYSREG(cntv_ctl_el0), READ_SYSREG(cntp_ctl_el0));
  print(" gicd %x %x %x", read32(gic.distributor + GICD_CTLR), read32(gic.distributor + GICD_IGROUPR + 4),
        read32(gic.distributor + GICD_ICFGR + 8));
  print(" bank %x %x %x", read32(bank + GICD_ISENABLER), read32(bank + GICD_IGROUPR), read32(bank + GICD_ICFGR + 4));
  for (unsigned intid = 0; intid < 64; intid += 4) {
    print(" %x", read32((intid < 32 ? bank : gic.distributor) + GICD_IPRIORITYR + intid));
  }
  if (gic.version == 2) {
    print(" gicc %x %x", read32(gic.cpu_interface), read32(gic.cpu_interface + GICC_PMR));
  } else {
    print(" redistributor %x", read32(gic_redistributor()));
  }
  print(" uart %x %x\n", read32(kUart + UARTIFLS), read32(kUart + UARTRIS));
}

static void print_seeds(void) {
  unsigned bytes = 0;
  const void* kaslr = dt_property(dt_find_path("/chosen"), "kaslr-seed", &bytes);
  const void* seed = dt_property(dt_find_path("/chosen"), "rng-seed", &bytes);
  print("SEED %lx%lx\n", kaslr == NULL ? 0 : dt_two_cells(kaslr, 0), seed == NULL ? 0 : dt_two_cells(seed, 0));
}

static void make_dirty(void) {
  boots_seen_by_image = 1;
  marker = 0;
  write32(kUart + UARTIMSC, 0x7f0);
  write32(gic.distributor + GICD_ISPENDR + 4, ~0U);
  write32(gic.distributor + GICD_ISENABLER + 4, ~0U);
  gic_send_sgi(1, 0);
  memset((void*)entry.dtb, 0xff, dt_total_bytes());
}

static void start_others(void) {
  const unsigned count = cpu_count();
  for (unsigned index = 1; index < count; ++index) {
    if (start_cpu(index, be_busy, NULL) != PSCI_SUCCESS) {
      report(false, "reset", "CPU %u does not start", index);
    }
  }
  report(wait_until(&others, count - 1, kMsToStart), "reset", "%u CPUs are up", count);
}

// Loads that KVM cannot describe, each answered by an abort, for as long as the machine lives.
static void abort_without_end(void) {
  others_reset = true;
  for (;;) {
    expect_fault();
    __asm__ volatile("ldp x9, x10, [%0]" ::"r"(device_view(kUart)) : "x9", "x10", "memory");
    (void)fault_taken();
  }
}

static void obey(int command) {
  switch (command) {
    case 'r':
      hvc(PSCI_SYSTEM_RESET, 0, 0, 0);
      break;
    case '2':
      hvc(PSCI_SYSTEM_RESET2, 0, 0x1234, 0);
      break;
    case 'v':
      hvc(PSCI_SYSTEM_RESET2, VENDOR_RESET, 0x5678, 0);
      break;
    case 'a':
      abort_without_end();
      break;
    default:
      return;
  }
  report(false, "reset", "the call for %c returned", command);
}

void payload_main(void) {
  print("BOOT\n");
  gic_find();
  check_entry();
  check_gic();
  if (argument("quiet", 0) == 0) {
    print_state();
  }
  print_seeds();
  gic_init();
  start_others();
  print("READY\n");
  const int command = uart_get();
  if (command != 'q') {
    make_dirty();
    obey(command);
  }
}
