// SPDX-License-Identifier: Apache-2.0
// The device tree describes the machine that runs the payload. Arguments: cpus=N memory=BYTES initrd=BYTES
// (0: none) gic=2|3, what it must say.
#include "tests/guest/lib/payload.h"

enum { kMsToStart = 200000, kSeedBytes = 32, kLevelLow = 8, kPpi = 1 };

static volatile unsigned reported;
static volatile uint64_t mpidr_seen[kMaxCpus];

static void note_mpidr(void* unused) {
  (void)unused;
  mpidr_seen[this_cpu()->index] = this_cpu()->mpidr;
  __atomic_add_fetch(&reported, 1, __ATOMIC_RELEASE);
}

static bool same(const char* a, const char* b) { return strlen(a) == strlen(b) && memcmp(a, b, strlen(a)) == 0; }

static void check_memory(void) {
  report(ram_base() == 0x40000000, "dtb", "RAM starts at %lx", ram_base());
  report(ram_bytes() == argument("memory", 0), "dtb", "RAM has %lu bytes", ram_bytes());
  const uint64_t dtb = (uint64_t)entry.dtb;
  report(dtb >= ram_base() && dtb + dt_total_bytes() <= ram_base() + ram_bytes(), "dtb", "the tree is in RAM, at %lx",
         dtb);
  report(dtb / (2U << 20) == (dtb + dt_total_bytes() - 1) / (2U << 20), "dtb", "the tree does not cross 2 MiB");
  const bool apart = dtb + dt_total_bytes() <= (uint64_t)_start || dtb >= (uint64_t)_end;
  report(apart, "dtb", "the tree and the image are apart");
}

static void check_chosen(void) {
  unsigned bytes = 0;
  const int chosen = dt_find_path("/chosen");
  const char* path = dt_property(chosen, "stdout-path", &bytes);
  report(path != NULL && dt_find_path(path) != kNoNode, "dtb", "stdout-path names a node: %s",
         path == NULL ? "" : path);
  const void* seed = dt_property(chosen, "rng-seed", &bytes);
  report(seed != NULL && bytes >= kSeedBytes, "dtb", "rng-seed has %u bytes", seed == NULL ? 0 : bytes);
  const void* kaslr = dt_property(chosen, "kaslr-seed", &bytes);
  report(kaslr != NULL && bytes == 8 && dt_two_cells(kaslr, 0) != 0, "dtb", "kaslr-seed is there");
  print("BOOTARGS %s\n", command_line());
}

static void check_initrd(void) {
  unsigned start_bytes = 0, end_bytes = 0;
  const int chosen = dt_find_path("/chosen");
  const void* start = dt_property(chosen, "linux,initrd-start", &start_bytes);
  const void* end = dt_property(chosen, "linux,initrd-end", &end_bytes);
  const uint64_t wanted = argument("initrd", 0);
  if (wanted == 0) {
    report(start == NULL && end == NULL, "dtb", "no initrd is announced");
    return;
  }
  if (start == NULL || end == NULL) {
    report(false, "dtb", "the initrd is announced");
    return;
  }
  const uint64_t from = start_bytes == 8 ? dt_two_cells(start, 0) : dt_cell(start, 0);
  const uint64_t to = end_bytes == 8 ? dt_two_cells(end, 0) : dt_cell(end, 0);
  report(to - from == wanted, "dtb", "the initrd has %lu bytes", to - from);
  uint32_t sum = 0;
  for (uint64_t at = from; at < to; ++at) {
    sum = sum * 31 + *(const uint8_t*)at;
  }
  report(sum == (uint32_t)argument("sum", 0), "dtb", "the initrd's content is right");
}

static void check_cpus(void) {
  const unsigned count = cpu_count();
  report(count == argument("cpus", 0), "dtb", "there are %u CPUs", count);
  mpidr_seen[0] = this_cpu()->mpidr;
  for (unsigned index = 1; index < count && index < kMaxCpus; ++index) {
    report(start_cpu(index, note_mpidr, NULL) == PSCI_SUCCESS, "dtb", "CPU %u starts", index);
  }
  report(wait_until(&reported, count - 1, kMsToStart), "dtb", "all CPUs started");
  for (unsigned index = 0; index < count && index < kMaxCpus; ++index) {
    report(mpidr_seen[index] == mpidr_of(index), "dtb", "CPU %u: reg %lx is its MPIDR", index, mpidr_of(index));
  }
}

static void check_timer(void) {
  static const uint32_t kPpis[] = {13, 14, 11, 10};
  unsigned bytes = 0;
  const void* interrupts = dt_property(dt_find_compatible("arm,armv8-timer", kNoNode), "interrupts", &bytes);
  if (interrupts == NULL || bytes < sizeof kPpis * 3) {
    report(false, "dtb", "the timer has %u bytes of interrupts", interrupts == NULL ? 0 : bytes);
    return;
  }
  const uint32_t mask = argument("gic", 3) == 2 ? ((1U << cpu_count()) - 1) << 8 : 0;
  for (unsigned i = 0; i < 4; ++i) {
    report(dt_cell(interrupts, 3 * i) == kPpi && dt_cell(interrupts, 3 * i + 1) == kPpis[i] &&
               dt_cell(interrupts, 3 * i + 2) == (kLevelLow | mask),
           "dtb", "timer interrupt %u is <%x %u %x>", i, dt_cell(interrupts, 3 * i), dt_cell(interrupts, 3 * i + 1),
           dt_cell(interrupts, 3 * i + 2));
  }
}

// Every phandle that is referred to exists: interrupt-parent, msi-parent, clocks.
static void check_references(void) {
  static const char* const kNames[] = {"interrupt-parent", "msi-parent", "clocks", "gpios"};
  unsigned dangling = 0;
  unsigned seen = 0;
  for (int node = dt_next_node(kNoNode); node != kNoNode; node = dt_next_node(node)) {
    for (unsigned i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
      unsigned bytes = 0;
      const void* property = dt_property(node, kNames[i], &bytes);
      if (property != NULL && bytes >= 4) {
        ++seen;
        dangling += dt_find_phandle(dt_cell(property, 0)) == kNoNode;
      }
    }
  }
  report(seen > 0 && dangling == 0, "dtb", "%u references, %u lead nowhere", seen, dangling);
}

static void check_devices(void) {
  unsigned bytes = 0;
  const int psci = dt_find_compatible("arm,psci-1.0", kNoNode);
  const char* method = dt_property(psci, "method", &bytes);
  report(method != NULL && same(method, "hvc"), "dtb", "PSCI is called by hvc");
  const char* gic_name = argument("gic", 3) == 2 ? "arm,cortex-a15-gic" : "arm,gic-v3";
  report(dt_find_compatible(gic_name, kNoNode) != kNoNode, "dtb", "the interrupt controller is %s", gic_name);
  unsigned count = 0, incoherent = 0;
  for (int node = dt_find_compatible("virtio,mmio", kNoNode); node != kNoNode;
       node = dt_find_compatible("virtio,mmio", node)) {
    ++count;
    incoherent += dt_property(node, "dma-coherent", &bytes) == NULL;
  }
  report(incoherent == 0, "dtb", "of %u virtio devices, %u lack dma-coherent", count, incoherent);
}

void payload_main(void) {
  check_memory();
  check_chosen();
  check_initrd();
  check_cpus();
  check_timer();
  check_references();
  check_devices();
}
