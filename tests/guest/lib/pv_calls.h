// SPDX-License-Identifier: Apache-2.0
// PV vCPU state as a guest uses it (docs/pv-vcpu-state.md), and calls whose registers can be looked at.
#pragma once

#include "pv/abi/pv_vcpu_state.h"
#include "tests/guest/lib/payload.h"

// What the device tree says of the interface.
struct PvVcpuState {
  bool found;
  uint64_t region;
  uint64_t region_bytes;
  uint32_t stride;
  uint32_t functions;  // the first
};
struct PvVcpuState pv_find(void);

typedef const volatile struct pv_vcpu_state_record* PvRecord;

// The three calls, by HVC, with the numbers of the header.
int64_t pv_features(uint32_t function);
int64_t pv_init(void);
int64_t pv_release(void);

// The record at an address that INIT returned, as the specification says to map it.
static inline PvRecord pv_record(int64_t addr) { return (PvRecord)cached_view((uint64_t)addr); }

// Number of bytes of [addr, addr + bytes) that are not zero, seen through the same mapping.
unsigned pv_nonzero_bytes(uint64_t addr, uint64_t bytes);

// x0 to x17 of a call.
struct CallRegisters {
  uint64_t x[18];
};
void call_by_hvc(struct CallRegisters* registers);
void call_by_smc(struct CallRegisters* registers);
