// SPDX-License-Identifier: Apache-2.0
// Address space: 512 GiB by blocks of 1 GiB. 0-128 GiB one to one (RAM cacheable, all else Device-nGnRnE),
// 128-256 GiB the same physical addresses as Normal Non-cacheable, 256-384 GiB as Device-nGnRnE, 384-512 GiB as
// Normal Write-Back.
#include "tests/guest/lib/payload.h"

enum { kEntries = 512, kViewGib = 128 };
enum { kAttrDevice = 0, kAttrCached = 1, kAttrNonCached = 2 };

#define GIB (1ULL << 30)

static __attribute__((aligned(4096))) uint64_t table[kEntries];
static bool table_is_made;

uint64_t ram_base(void) {
  unsigned bytes = 0;
  const void* reg = dt_property(dt_find_type("memory", kNoNode), "reg", &bytes);
  return reg == NULL ? 0 : dt_two_cells(reg, 0);
}

uint64_t ram_bytes(void) {
  unsigned bytes = 0;
  const void* reg = dt_property(dt_find_type("memory", kNoNode), "reg", &bytes);
  return reg == NULL ? 0 : dt_two_cells(reg, 2);
}

static const uint64_t kNoExecute = 3ULL << 53;

static uint64_t block(uint64_t gib, unsigned attribute) {
  const uint64_t kBlock = 1, kAccessed = 1ULL << 10, kInnerShareable = 3ULL << 8;
  return gib * GIB | kBlock | kAccessed | kInnerShareable | (uint64_t)attribute << 2 |
         (attribute == kAttrCached ? 0 : kNoExecute);
}

static void make_table(void) {
  const uint64_t first = ram_base() / GIB;
  const uint64_t end = (ram_base() + ram_bytes() + GIB - 1) / GIB;
  for (uint64_t gib = 0; gib < kViewGib; ++gib) {
    table[gib] = block(gib, gib >= first && gib < end ? kAttrCached : kAttrDevice);
    table[gib + kViewGib] = block(gib, kAttrNonCached);
    table[gib + 2 * kViewGib] = block(gib, kAttrDevice);
    table[gib + 3 * kViewGib] = block(gib, kAttrCached) | kNoExecute;
  }
  table_is_made = true;
}

void mmu_enable(void) {
  if (!table_is_made) {
    make_table();
  }
  const uint64_t kWalksCached = 1ULL << 8 | 1ULL << 10 | 3ULL << 12;  // IRGN0, ORGN0, SH0
  const uint64_t kNoUpperHalf = 1ULL << 23;                           // EPD1
  const uint64_t t0sz = 64 - 39;
  const uint64_t ips = field(READ_SYSREG(id_aa64mmfr0_el1), 0, 4);
  WRITE_SYSREG(mair_el1, 0x00ULL << 8 * kAttrDevice | 0xffULL << 8 * kAttrCached | 0x44ULL << 8 * kAttrNonCached);
  WRITE_SYSREG(tcr_el1, t0sz | kWalksCached | kNoUpperHalf | (ips > 5 ? 5 : ips) << 32);
  WRITE_SYSREG(ttbr0_el1, table);
  __asm__ volatile("dsb sy\n\ttlbi vmalle1\n\tic iallu\n\tdsb sy\n\tisb" ::: "memory");
  const uint64_t kMmu = 1, kData = 1 << 2, kInstructions = 1 << 12;
  WRITE_SYSREG(sctlr_el1, READ_SYSREG(sctlr_el1) | kMmu | kData | kInstructions);
}
