// SPDX-License-Identifier: Apache-2.0
// Drives the interrupt controller that the device tree names: GICv2 (IHI 0048B.b) or GICv3 (IHI 0069H).
#include "tests/guest/lib/payload.h"

enum {
  GICD_CTLR = 0x0,
  GICD_ISENABLER = 0x100,
  GICD_ICENABLER = 0x180,
  GICD_IGROUPR = 0x80,
  GICD_ITARGETSR = 0x800,
  GICD_SGIR = 0xf00
};
enum { GICD_IPRIORITYR = 0x400, GICD_IROUTER = 0x6000 };
enum { GICC_CTLR = 0x0, GICC_PMR = 0x4, GICC_IAR = 0xc, GICC_EOIR = 0x10 };
enum { GICR_CTLR = 0x0, GICR_TYPER = 0x8, GICR_WAKER = 0x14, GICR_SGI_FRAME = 0x10000, GICR_STRIDE = 0x20000 };
enum { kFirstSpi = 32, kSpurious = 1020, kGicrLast = 1 << 4, kChildrenAsleep = 1 << 2, kProcessorSleep = 1 << 1 };
enum { kEnableGroup1 = 1 << 1, kAffinityRouting = 1 << 4 };

#define ICC_IAR1_EL1 S3_0_C12_C12_0
#define ICC_EOIR1_EL1 S3_0_C12_C12_1
#define ICC_SGI1R_EL1 S3_0_C12_C11_5
#define ICC_SRE_EL1 S3_0_C12_C12_5
#define ICC_PMR_EL1 S3_0_C4_C6_0
#define ICC_IGRPEN1_EL1 S3_0_C12_C12_7
#define READ_ICC(name) READ_ICC_NAMED(name)
#define READ_ICC_NAMED(name) READ_SYSREG(name)
#define WRITE_ICC(name, value) WRITE_ICC_NAMED(name, value)
#define WRITE_ICC_NAMED(name, value) WRITE_SYSREG(name, value)

struct Gic gic;

void gic_find(void) {
  unsigned bytes = 0;
  int node = dt_find_compatible("arm,gic-v3", kNoNode);
  gic.version = node == kNoNode ? 2 : 3;
  if (node == kNoNode) {
    node = dt_find_compatible("arm,cortex-a15-gic", kNoNode);
  }
  const void* reg = dt_property(node, "reg", &bytes);
  if (reg == NULL) {
    report(false, "gic", "the device tree has no interrupt controller");
    finish();
  }
  gic.distributor = dt_two_cells(reg, 0);
  gic.cpu_interface = gic.redistributors = dt_two_cells(reg, 4);
}

uintptr_t gic_redistributor(void) {
  const uint64_t mpidr = this_cpu()->mpidr;
  const uint64_t affinity = field(mpidr, 32, 8) << 24 | field(mpidr, 0, 24);
  for (uintptr_t frame = gic.redistributors;; frame += GICR_STRIDE) {
    const uint64_t typer = read64(frame + GICR_TYPER);
    if (typer >> 32 == affinity) {
      return frame;
    }
    if ((typer & kGicrLast) != 0) {
      report(false, "gic", "no redistributor for affinity %lx", affinity);
      finish();
    }
  }
}

void gic_init(void) {
  gic_find();
  if (gic.version == 3) {
    write32(gic.distributor + GICD_CTLR, kAffinityRouting | kEnableGroup1);
  } else {
    write32(gic.distributor + GICD_CTLR, 1);
  }
  gic_init_cpu();
}

static void init_cpu_v3(void) {
  const uintptr_t frame = gic_redistributor();
  write32(frame + GICR_WAKER, read32(frame + GICR_WAKER) & ~(uint32_t)kProcessorSleep);
  while ((read32(frame + GICR_WAKER) & kChildrenAsleep) != 0) {
  }
  write32(frame + GICR_SGI_FRAME + GICD_IGROUPR, 0xffffffff);
  for (unsigned intid = 0; intid < kFirstSpi; intid += 4) {
    write32(frame + GICR_SGI_FRAME + GICD_IPRIORITYR + intid, 0x80808080);
  }
  WRITE_ICC(ICC_SRE_EL1, READ_ICC(ICC_SRE_EL1) | 1);
  WRITE_ICC(ICC_PMR_EL1, 0xf0);
  WRITE_ICC(ICC_IGRPEN1_EL1, 1);
}

void gic_init_cpu(void) {
  if (gic.version == 3) {
    init_cpu_v3();
    return;
  }
  for (unsigned intid = 0; intid < kFirstSpi; intid += 4) {
    write32(gic.distributor + GICD_IPRIORITYR + intid, 0x80808080);
  }
  write32(gic.cpu_interface + GICC_PMR, 0xf0);
  write32(gic.cpu_interface + GICC_CTLR, 1);
}

static uintptr_t bank_of(unsigned intid) {
  return gic.version == 3 && intid < kFirstSpi ? gic_redistributor() + GICR_SGI_FRAME : gic.distributor;
}

// An SPI goes to the CPU that enables it.
static void route_here(unsigned intid) {
  if (gic.version == 3) {
    const uintptr_t group = gic.distributor + GICD_IGROUPR + 4 * (intid / 32);
    write32(group, read32(group) | 1U << intid % 32);
    write64(gic.distributor + GICD_IROUTER + 8UL * intid, this_cpu()->mpidr);
  } else {
    write8(gic.distributor + GICD_ITARGETSR + intid, read8(gic.distributor + GICD_ITARGETSR));
  }
  write8(gic.distributor + GICD_IPRIORITYR + intid, 0x80);
}

void gic_enable(unsigned intid) {
  if (intid >= kFirstSpi) {
    route_here(intid);
  }
  write32(bank_of(intid) + GICD_ISENABLER + 4 * (intid / 32), 1U << intid % 32);
}

void gic_disable(unsigned intid) { write32(bank_of(intid) + GICD_ICENABLER + 4 * (intid / 32), 1U << intid % 32); }

void gic_send_sgi(unsigned sgi, unsigned cpu_index) {
  __asm__ volatile("dsb ish" ::: "memory");
  if (gic.version == 2) {
    write32(gic.distributor + GICD_SGIR, 1U << (16 + cpu_index) | sgi);
    return;
  }
  const uint64_t mpidr = mpidr_of(cpu_index);
  const uint64_t aff0 = field(mpidr, 0, 8);
  WRITE_ICC(ICC_SGI1R_EL1, field(mpidr, 32, 8) << 48 | (aff0 / 16) << 44 | field(mpidr, 16, 8) << 32 |
                               (uint64_t)sgi << 24 | field(mpidr, 8, 8) << 16 | 1ULL << aff0 % 16);
}

void gic_handle_interrupt(void);
void gic_handle_interrupt(void) {
  const bool v3 = gic.version == 3;
  const uint32_t iar = v3 ? (uint32_t)READ_ICC(ICC_IAR1_EL1) : read32(gic.cpu_interface + GICC_IAR);
  const unsigned intid = v3 ? iar & 0xffffff : iar & 0x3ff;
  if (intid >= kSpurious && intid < kSpurious + 4) {
    return;
  }
  if (on_interrupt != NULL) {
    on_interrupt(intid);
  }
  if (v3) {
    WRITE_ICC(ICC_EOIR1_EL1, iar);
  } else {
    write32(gic.cpu_interface + GICC_EOIR, iar);
  }
}
