// SPDX-License-Identifier: Apache-2.0
// Drives the interrupt translation service that the device tree names, for one device whose event N is LPI kFirstLpi + N of CPU N.
// IHI 0069H, "The ITS", "LPI Configuration tables", "LPI Pending tables".
#include "tests/guest/lib/payload.h"

enum { GITS_CTLR = 0x0, GITS_CBASER = 0x80, GITS_CWRITER = 0x88, GITS_CREADR = 0x90, GITS_BASER = 0x100 };
enum { GICR_CTLR = 0x0, GICR_TYPER = 0x8, GICR_PROPBASER = 0x70, GICR_PENDBASER = 0x78 };
enum { kBaserCount = 8, kDevices = 1, kCollections = 4, kPages64k = 2 << 8 };
enum { INT = 0x3, SYNC = 0x5, MAPD = 0x8, MAPC = 0x9, MAPTI = 0xa };
enum { kIdBits = 14, kEventBits = 3, kLpiEnabled = 0x80 | 1, kCommandWords = 4, kMostCpus = 1 << kEventBits };
enum { kTableBytes = 65536, kTries = 1000000 };
#define kValid (1ULL << 63)
#define kPendingTableIsZero (1ULL << 62)

// 64 KiB each, and aligned to it: the least that every ITS takes.
struct Table {
  uint8_t bytes[kTableBytes];
} __attribute__((aligned(kTableBytes)));

static struct Table commands, devices, collections, translations, configuration, pending[kMostCpus];
static uintptr_t its;
static unsigned next_command;
static uint64_t processors[kMostCpus];

bool its_find(void) {
  const int node = dt_find_compatible("arm,gic-v3-its", kNoNode);
  unsigned bytes = 0;
  const void* const reg = node == kNoNode ? NULL : dt_property(node, "reg", &bytes);
  its = reg == NULL ? 0 : dt_two_cells(reg, 0);
  return its != 0;
}

void its_init_cpu(void) {
  const unsigned cpu = this_cpu()->index;
  const uintptr_t frame = gic_redistributor();
  processors[cpu] = field(read64(frame + GICR_TYPER), 8, 16);
  memset(&configuration.bytes[0], kLpiEnabled, kMostCpus);  // the same from each CPU
  __asm__ volatile("dsb sy" ::: "memory");
  write64(frame + GICR_PROPBASER, (uintptr_t)&configuration | (kIdBits - 1));
  write64(frame + GICR_PENDBASER, (uintptr_t)&pending[cpu] | kPendingTableIsZero);
  write32(frame + GICR_CTLR, read32(frame + GICR_CTLR) | 1);
}

static bool give(uint64_t first, uint64_t second, uint64_t third) {
  volatile uint64_t* const words = (uint64_t*)&commands + next_command * kCommandWords;
  words[0] = first;
  words[1] = second;
  words[2] = third;
  words[3] = 0;
  next_command = (next_command + 1) % (4096 / 8 / kCommandWords);  // of the queue's one page
  __asm__ volatile("dsb sy" ::: "memory");
  const uint64_t place = (uint64_t)next_command * kCommandWords * 8;
  write64(its + GITS_CWRITER, place);
  for (unsigned tries = 0; tries < kTries; ++tries) {
    if (read64(its + GITS_CREADR) == place) {
      return true;
    }
  }
  return false;
}

bool its_init(void) {
  for (unsigned index = 0; index < kBaserCount; ++index) {
    const uintptr_t baser = its + GITS_BASER + 8UL * index;
    const uint64_t type = field(read64(baser), 56, 3);
    if (type == kDevices || type == kCollections) {
      write64(baser, kValid | (uintptr_t)(type == kDevices ? &devices : &collections) | kPages64k);
    }
  }
  write64(its + GITS_CBASER, kValid | (uintptr_t)&commands);
  write64(its + GITS_CWRITER, 0);
  write32(its + GITS_CTLR, 1);
  bool good = give(MAPD, kEventBits - 1, kValid | (uintptr_t)&translations);
  for (unsigned cpu = 0; cpu < cpu_count(); ++cpu) {
    good = good && give(MAPC, 0, kValid | processors[cpu] << 16 | cpu) &&
           give(MAPTI, (uint64_t)(kFirstLpi + cpu) << 32 | cpu, cpu) && give(SYNC, 0, processors[cpu] << 16);
  }
  return good;
}

bool its_send_lpi(unsigned cpu_index) { return give(INT, cpu_index, 0); }
