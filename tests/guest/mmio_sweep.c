// SPDX-License-Identifier: Apache-2.0
// Every width at the offsets of every device's window, reads and writes of 0 and of all ones: each is answered
// or aborted, and the machine lives on.
#include "tests/guest/lib/payload.h"

enum { kRegisters = 0x200, kIdRegisters = 0xfe0, kPage = 0x1000, kGapStep = 0x44, kTail = 16 };

static unsigned aborts;
static unsigned others;

static void note(struct Fault fault) {
  aborts += is_external_abort(fault);
  others += fault.taken && !is_external_abort(fault);
}

static void read_once(uintptr_t at, unsigned width) {
  expect_fault();
  switch (width) {
    case 1:
      (void)read8(at);
      break;
    case 2:
      (void)read16(at);
      break;
    case 4:
      (void)read32(at);
      break;
    default:
      (void)read64(at);
      break;
  }
  note(fault_taken());
}

static void write_once(uintptr_t at, unsigned width, uint64_t value) {
  expect_fault();
  switch (width) {
    case 1:
      write8(at, (uint8_t)value);
      break;
    case 2:
      write16(at, (uint16_t)value);
      break;
    case 4:
      write32(at, (uint32_t)value);
      break;
    default:
      write64(at, value);
      break;
  }
  note(fault_taken());
}

// The offset after `offset`: dense where registers are, sparse between them.
static uint64_t next_offset(uint64_t offset, uint64_t size) {
  const bool is_dense = offset < kRegisters || (offset >= kIdRegisters && offset < kPage) || offset + kTail >= size;
  if (is_dense) {
    return offset + 1;
  }
  if (offset >= kPage) {
    return size > kTail && offset < size - kTail ? size - kTail : offset + 1;
  }
  return offset + kGapStep > kIdRegisters ? kIdRegisters : offset + kGapStep;
}

static void sweep(const char* name, uint64_t addr, uint64_t size, bool writable) {
  aborts = others = 0;
  unsigned accesses = 0;
  for (uint64_t offset = 0; offset < size; offset = next_offset(offset, size)) {
    for (unsigned width = 1; width <= 8; width *= 2) {
      if (offset % width != 0 || offset + width > size) {
        continue;
      }
      const uintptr_t at = device_view(addr + offset);
      read_once(at, width);
      if (writable) {
        write_once(at, width, ~0ULL);
        write_once(at, width, 0);
      }
      accesses += writable ? 3 : 1;
    }
  }
  uart_init();
  print("\n");
  report(others == 0, "mmio_sweep", "%s (%lx): %u accesses, %u aborts, %u other faults", name, addr, accesses, aborts,
         others);
}

static void sweep_nodes(const char* compatible, bool writable, unsigned most) {
  int node = dt_find_compatible(compatible, kNoNode);
  for (unsigned i = 0; node != kNoNode && i < most; ++i, node = dt_find_compatible(compatible, node)) {
    unsigned bytes = 0;
    const void* reg = dt_property(node, "reg", &bytes);
    if (reg != NULL) {
      sweep(dt_name(node), dt_two_cells(reg, 0), dt_two_cells(reg, 2), writable);
    }
  }
}

void payload_main(void) {
  sweep_nodes("arm,pl011", true, 1);
  sweep_nodes("arm,pl031", true, 1);
  sweep_nodes("arm,pl061", true, 1);
  sweep_nodes("qemu,pvpanic-mmio", false, 1);  // a write of its bits ends the machine: see pvpanic.c
  sweep_nodes("microsoft,vmgenid", true, 1);
  sweep_nodes("virtio,mmio", true, 4);
  sweep_nodes("arm,gic-v3", false, 1);
  sweep_nodes("arm,gic-v3-its", false, 1);
  sweep_nodes("arm,cortex-a15-gic", false, 1);
  sweep("an unused virtio slot", 0x0a000000 + 0x200 * 127, 0x200, true);
  sweep("a hole", 0x0c000000, kPage, true);
}
