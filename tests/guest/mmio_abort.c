// SPDX-License-Identifier: Apache-2.0
// Accesses that KVM cannot describe to the VMM (no valid syndrome) are answered by an external abort in every
// device's window, in holes and beyond RAM; the machine lives on. Argument strict=1: nothing else will do.
#include "tests/guest/lib/payload.h"

enum { kAlignmentFault = 0x21 };

static bool strict;

static void ldp(uintptr_t at) { __asm__ volatile("ldp x9, x10, [%0]" ::"r"(at) : "x9", "x10", "memory"); }
static void stp(uintptr_t at) { __asm__ volatile("stp xzr, xzr, [%0]" ::"r"(at) : "memory"); }
static void ldp_words(uintptr_t at) { __asm__ volatile("ldp w9, w10, [%0]" ::"r"(at) : "x9", "x10", "memory"); }
static void load_post_index(uintptr_t at) { __asm__ volatile("ldr w9, [%0], #4" : "+r"(at)::"x9", "memory"); }
static void store_post_index(uintptr_t at) { __asm__ volatile("str wzr, [%0], #4" : "+r"(at)::"memory"); }
static void load_pre_index(uintptr_t at) { __asm__ volatile("ldrb w9, [%0, #1]!" : "+r"(at)::"x9", "memory"); }
static void store_pre_index(uintptr_t at) { __asm__ volatile("strh wzr, [%0, #2]!" : "+r"(at)::"memory"); }
static void load_exclusive(uintptr_t at) { __asm__ volatile("ldxr w9, [%0]" ::"r"(at) : "x9", "memory"); }
static void zero_block(uintptr_t at) { __asm__ volatile("dc zva, %0" ::"r"(at) : "memory"); }

#define SIMD(instruction) __asm__ volatile(".arch_extension simd\n\t" instruction ::"r"(at) : "memory")
static void load_vector(uintptr_t at) { SIMD("ldr q0, [%0]"); }
static void store_vector(uintptr_t at) { SIMD("str q0, [%0]"); }
static void load_lane(uintptr_t at) { SIMD("ld1 {v0.4s}, [%0]"); }
static void store_lane(uintptr_t at) { SIMD("st1 {v0.s}[1], [%0]"); }

#define LSE(instruction) __asm__ volatile(".arch_extension lse\n\t" instruction ::"r"(at) : "x9", "memory")
static void atomic_add(uintptr_t at) { LSE("ldadd wzr, w9, [%0]"); }
static void atomic_swap(uintptr_t at) { LSE("swp wzr, w9, [%0]"); }
static void compare_and_swap(uintptr_t at) { LSE("cas wzr, wzr, [%0]"); }

struct Attempt {
  const char* name;
  void (*make)(uintptr_t at);
  bool is_lse;
  bool is_normal;  // needs Normal memory: Device memory refuses it by itself
};

static const struct Attempt kAttempts[] = {
    {"ldp", ldp, false, false},
    {"stp", stp, false, false},
    {"ldp of words", ldp_words, false, false},
    {"ldr post-index", load_post_index, false, false},
    {"str post-index", store_post_index, false, false},
    {"ldrb pre-index", load_pre_index, false, false},
    {"strh pre-index", store_pre_index, false, false},
    {"ldxr", load_exclusive, false, false},
    {"ldr q", load_vector, false, false},
    {"str q", store_vector, false, false},
    {"ld1", load_lane, false, false},
    {"st1 lane", store_lane, false, false},
    {"ldadd", atomic_add, true, false},
    {"swp", atomic_swap, true, false},
    {"cas", compare_and_swap, true, false},
    {"dc zva", zero_block, false, true},
};

static bool is_allowed(struct Fault fault) { return is_external_abort(fault) || (!strict && !fault.taken); }

static void try_place(const char* name, uint64_t addr) {
  const bool has_lse = field(READ_SYSREG(id_aa64isar0_el1), 20, 4) >= 2;
  unsigned aborts = 0, answers = 0;
  for (unsigned i = 0; i < sizeof kAttempts / sizeof kAttempts[0]; ++i) {
    const struct Attempt* attempt = &kAttempts[i];
    if (attempt->is_lse && !has_lse) {
      continue;
    }
    expect_fault();
    attempt->make(attempt->is_normal ? normal_view(addr) : device_view(addr));
    const struct Fault fault = fault_taken();
    aborts += is_external_abort(fault);
    answers += !fault.taken;
    if (!is_allowed(fault)) {
      report(false, "mmio_abort", "%s at %s (%lx): %s, esr %lx", attempt->name, name, addr,
             fault.taken ? "another fault" : "answered", fault.esr);
    }
  }
  report(true, "mmio_abort", "%s (%lx): %u aborts, %u answers", name, addr, aborts, answers);
}

// Plain loads and stores that cross the end of a window, or are not aligned, through Normal memory.
static void try_unaligned(const char* name, uint64_t addr) {
  static const unsigned kOffsets[] = {1, 3, 0x1fd, 0x1ff};
  unsigned bad = 0;
  for (unsigned i = 0; i < sizeof kOffsets / sizeof kOffsets[0]; ++i) {
    const uintptr_t at = normal_view(addr) + kOffsets[i];
    expect_fault();
    __asm__ volatile("ldr x9, [%0]" ::"r"(at) : "x9", "memory");
    const struct Fault load = fault_taken();
    expect_fault();
    __asm__ volatile("str wzr, [%0]" ::"r"(at) : "memory");
    const struct Fault store = fault_taken();
    bad += (load.taken && !is_external_abort(load)) || (store.taken && !is_external_abort(store));
  }
  report(bad == 0, "mmio_abort", "%s (%lx): unaligned accesses are aborted or answered", name, addr);
}

// A GICv2's second window, the CPU interface, is hardware that KVM maps into the guest: nobody emulates it.
static bool is_hardware(int node, unsigned index) {
  return node == dt_find_compatible("arm,cortex-a15-gic", kNoNode) && index > 0;
}

static void try_node(const char* compatible) {
  for (int node = dt_find_compatible(compatible, kNoNode); node != kNoNode;
       node = dt_find_compatible(compatible, node)) {
    unsigned bytes = 0;
    const void* reg = dt_property(node, "reg", &bytes);
    for (unsigned i = 0; reg != NULL && i + 4 <= bytes / 4; i += 4) {
      if (!is_hardware(node, i)) {
        try_place(dt_name(node), dt_two_cells(reg, i));
      }
    }
  }
}

// A cache operation on a device's address is no access at all.
static void try_cache_operations(uint64_t addr) {
  expect_fault();
  __asm__ volatile("dc civac, %0" ::"r"(normal_view(addr)) : "memory");
  report(!fault_taken().taken, "mmio_abort", "dc civac at %lx does nothing", addr);
}

void payload_main(void) {
  static const char* const kDevices[] = {"arm,pl011",  "arm,pl031",          "arm,pl061",      "virtio,mmio",
                                         "arm,gic-v3", "arm,cortex-a15-gic", "arm,gic-v3-its", "qemu,pvpanic-mmio"};
  strict = argument("strict", 0) != 0;
  for (unsigned i = 0; i < sizeof kDevices / sizeof kDevices[0]; ++i) {
    try_node(kDevices[i]);
  }
  try_place("an unused virtio slot", 0x0a000000 + 0x200 * 127);
  try_place("a hole", 0x0c000000);
  try_place("the last page below RAM", 0x3ffff000);
  try_place("the first byte after RAM", ram_base() + ram_bytes());
  try_place("far beyond RAM", 60ULL << 30);
  try_unaligned("uart", kUart);
  try_unaligned("virtio", 0x0a000000);
  try_unaligned("a hole", 0x0c000000);
  try_cache_operations(kUart);
  report(read32(kUart + UARTFR) != 0xffffffff, "mmio_abort", "the UART still answers");
}
