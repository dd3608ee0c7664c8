// SPDX-License-Identifier: Apache-2.0
// PV vCPU state: the region can be read in any way and written in none. A store that KVM can decode is ignored, any other
// is aborted; either way the region is as it was, and the machine lives on.
#include "tests/guest/lib/pv_calls.h"

enum { kTries = 100 };

static struct PvVcpuState node;

// ---- Stores

static void store_byte(uintptr_t at) { write8(at, 0x5a); }
static void store_half(uintptr_t at) { write16(at, 0x5a5a); }
static void store_word(uintptr_t at) { write32(at, 0x5a5a5a5a); }
static void store_double(uintptr_t at) { write64(at, 0x5a5a5a5a5a5a5a5aULL); }
static void store_release(uintptr_t at) { __asm__ volatile("stlr %w1, [%0]" ::"r"(at), "r"(0x5a) : "memory"); }
static void store_register_offset(uintptr_t at) {
  __asm__ volatile("str %w1, [%0, %2]" ::"r"(at), "r"(0x5a), "r"(0UL) : "memory");
}

static void store_pair(uintptr_t at) { __asm__ volatile("stp %1, %1, [%0]" ::"r"(at), "r"(0x5aUL) : "memory"); }
static void store_pair_of_words(uintptr_t at) {
  __asm__ volatile("stp %w1, %w1, [%0]" ::"r"(at), "r"(0x5a) : "memory");
}
static void store_post_index(uintptr_t at) { __asm__ volatile("str %w1, [%0], #4" : "+r"(at) : "r"(0x5a) : "memory"); }
static void store_pre_index(uintptr_t at) { __asm__ volatile("str %w1, [%0, #0]!" : "+r"(at) : "r"(0x5a) : "memory"); }
static void zero_block(uintptr_t at) { __asm__ volatile("dc zva, %0" ::"r"(at) : "memory"); }
static void invalidate(uintptr_t at) { __asm__ volatile("dc ivac, %0" ::"r"(at) : "memory"); }

#define SIMD(instruction) \
  __asm__ volatile(".arch_extension simd\n\tmovi v0.16b, #0x5a\n\t" instruction ::"r"(at) : "memory")
static void store_vector(uintptr_t at) { SIMD("str q0, [%0]"); }
static void store_vector_pair(uintptr_t at) { SIMD("stp q0, q0, [%0]"); }
static void store_scalar(uintptr_t at) { SIMD("str d0, [%0]"); }
static void store_structure(uintptr_t at) { SIMD("st1 {v0.16b}, [%0]"); }
static void store_lane(uintptr_t at) { SIMD("st1 {v0.s}[1], [%0]"); }

#define LSE(instruction) __asm__ volatile(".arch_extension lse\n\t" instruction ::"r"(at), "r"(0x5a) : "x9", "memory")
static void atomic_add(uintptr_t at) { LSE("ldadd %w1, w9, [%0]"); }
static void atomic_set(uintptr_t at) { LSE("stset %w1, [%0]"); }
static void atomic_swap(uintptr_t at) { LSE("swpal %w1, w9, [%0]"); }
// Expects what is there, so that only permission can stop it.
static void compare_and_swap(uintptr_t at) { LSE("ldr w9, [%0]\n\tcas w9, %w1, [%0]"); }

static bool last_exclusive_stored;

// An exclusive store may fail without a store, but never succeed.
static void store_exclusive(uintptr_t at) {
  for (unsigned i = 0; i < kTries && !this_cpu()->fault.taken; ++i) {
    uint32_t failed = 1;
    __asm__ volatile("ldxr w9, [%1]\n\tstxr %w0, %w2, [%1]" : "+&r"(failed) : "r"(at), "r"(0x5a) : "x9", "memory");
    last_exclusive_stored = last_exclusive_stored || (failed == 0 && !this_cpu()->fault.taken);
  }
}

enum Answer { kIgnored, kAborted, kEither };

struct Store {
  const char* name;
  void (*make)(uintptr_t at);
  enum Answer wanted;
  bool is_lse;
};

static const struct Store kStores[] = {
    {"strb", store_byte, kIgnored, false},
    {"strh", store_half, kIgnored, false},
    {"str w", store_word, kIgnored, false},
    {"str x", store_double, kIgnored, false},
    {"stlr", store_release, kIgnored, false},
    {"str with register offset", store_register_offset, kIgnored, false},
    {"stp x", store_pair, kAborted, false},
    {"stp w", store_pair_of_words, kAborted, false},
    {"str post-index", store_post_index, kAborted, false},
    {"str pre-index", store_pre_index, kAborted, false},
    {"str q", store_vector, kAborted, false},
    {"stp q", store_vector_pair, kAborted, false},
    {"str d", store_scalar, kAborted, false},
    {"st1", store_structure, kAborted, false},
    {"st1 lane", store_lane, kAborted, false},
    {"stxr", store_exclusive, kEither, false},
    {"dc zva", zero_block, kAborted, false},
    {"dc ivac", invalidate, kEither, false},
    {"ldadd", atomic_add, kAborted, true},
    {"stset", atomic_set, kAborted, true},
    {"swpal", atomic_swap, kAborted, true},
    {"cas", compare_and_swap, kAborted, true},
};

static bool as_wanted(enum Answer wanted, struct Fault fault) {
  switch (wanted) {
    case kIgnored:
      return !fault.taken;
    case kAborted:
      return is_external_abort(fault);
    default:
      return !fault.taken || is_external_abort(fault);
  }
}

static void try_stores(const char* place, uint64_t addr) {
  const bool has_lse = field(READ_SYSREG(id_aa64isar0_el1), 20, 4) >= 2;
  unsigned made = 0, wrong = 0;
  for (unsigned i = 0; i < sizeof kStores / sizeof kStores[0]; ++i) {
    const struct Store* store = &kStores[i];
    if (store->is_lse && !has_lse) {
      continue;
    }
    expect_fault();
    store->make(cached_view(addr));
    const struct Fault fault = fault_taken();
    ++made;
    if (!as_wanted(store->wanted, fault)) {
      ++wrong;
      report(false, "pv_region", "%s at %s (%lx): %s, esr %lx", store->name, place, addr,
             fault.taken ? "a fault" : "ignored", fault.esr);
    }
  }
  report(wrong == 0 && !last_exclusive_stored, "pv_region", "%u kinds of stores at %s (%lx) are answered as specified",
         made, place, addr);
  report(pv_nonzero_bytes(node.region, node.region_bytes) == 0, "pv_region", "the region is zero after them");
}

// ---- Reads

// Exclusive loads only where every CPU has them: in Write-Back memory.
static bool reads_nonzero(uintptr_t at, bool is_write_back) {
  uint64_t low, high, seen = 0;
  seen |= read8(at) | read16(at) | read32(at) | read64(at);
  __asm__ volatile("ldp %0, %1, [%2]" : "=&r"(low), "=&r"(high) : "r"(at) : "memory");
  seen |= low | high;
  __asm__ volatile(".arch_extension simd\n\tldr q0, [%2]\n\tmov %0, v0.d[0]\n\tmov %1, v0.d[1]"
                   : "=&r"(low), "=&r"(high)
                   : "r"(at)
                   : "memory");
  seen |= low | high;
  if (is_write_back && at % 8 == 0) {
    __asm__ volatile("ldxr %0, [%1]\n\tclrex" : "=r"(low) : "r"(at) : "memory");
  }
  return (seen | low) != 0;
}

static void try_reads(const char* view_name, uintptr_t region, unsigned step) {
  static const uint64_t kPlaces[] = {0, 0x40, 0xfc0, 0x1000, 0x7fc0, 0xffc0};
  unsigned reads = 0, nonzero = 0;
  expect_fault();
  for (unsigned i = 0; i < sizeof kPlaces / sizeof kPlaces[0]; ++i) {
    for (uint64_t offset = 0; offset <= PV_VCPU_STATE_RECORD_BYTES - 16; offset += step) {
      nonzero += reads_nonzero(region + kPlaces[i] + offset, region == cached_view(node.region));
      ++reads;
    }
  }
  const struct Fault fault = fault_taken();
  report(!fault.taken && nonzero == 0, "pv_region",
         "%u reads of every width through %s memory are zero: %u not, esr %lx", reads, view_name, nonzero,
         fault.taken ? fault.esr : 0);
}

// What lies beside the region has rules of its own; whatever they are, an access there harms nothing.
static void try_edges(void) {
  const uint64_t end = node.region + node.region_bytes;
  const uint64_t places[] = {node.region - 1, node.region - 4, node.region - 8, end - 1, end - 3, end - 7, end,
                             end + 4};
  unsigned wrong = 0;
  for (unsigned i = 0; i < sizeof places / sizeof places[0]; ++i) {
    expect_fault();
    (void)read8(cached_view(places[i]));
    const struct Fault byte = fault_taken();
    expect_fault();
    (void)read64(cached_view(places[i]));
    const struct Fault wide = fault_taken();
    wrong += (byte.taken && !is_external_abort(byte)) || (wide.taken && !is_external_abort(wide));
  }
  report(wrong == 0, "pv_region", "reads across the ends and just outside are answered or aborted");
  expect_fault();
  const uint64_t before = read64(cached_view(node.region - 8));
  const struct Fault fault = fault_taken();
  report(!fault.taken && before == 0, "pv_region", "just before the region is nothing: %lx", before);
}

static void check_active_record(void) {
  const int64_t addr = pv_init();
  PvRecord record = pv_record(addr);
  for (unsigned i = 0; i < sizeof kStores / sizeof kStores[0]; ++i) {
    if (kStores[i].is_lse && field(READ_SYSREG(id_aa64isar0_el1), 20, 4) < 2) {
      continue;
    }
    expect_fault();
    kStores[i].make((uintptr_t)record + 8 * (i % 2));
    (void)fault_taken();
  }
  report(record->revision == 0 && record->attributes == 0 && record->preempted == 0 && record->reserved == 0 &&
             pv_nonzero_bytes((uint64_t)addr + 24, sizeof record->padding) == 0 && record->preempt_count < 1U << 30,
         "pv_region", "stores do not change an active record");
  report(pv_release() == PV_VCPU_STATE_SUCCESS && pv_nonzero_bytes(node.region, node.region_bytes) == 0, "pv_region",
         "released, the region is zero");
}

void payload_main(void) {
  node = pv_find();
  report(node.found && node.region_bytes != 0, "pv_region", "the region is there");
  try_reads("Write-Back", cached_view(node.region), 1);
  try_reads("Non-cacheable", normal_view(node.region), 1);
  try_reads("Device", device_view(node.region), 16);
  try_edges();
  try_stores("the first record", node.region);
  try_stores("the first record's state", node.region + 8);
  try_stores("the last page's first record", node.region + node.region_bytes - 0x1000);
  try_stores("the last record", node.region + node.region_bytes - PV_VCPU_STATE_RECORD_BYTES);
  check_active_record();
  report(pv_init() > 0, "pv_region", "the calls still answer");
}
