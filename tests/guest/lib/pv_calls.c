// SPDX-License-Identifier: Apache-2.0
#include "tests/guest/lib/pv_calls.h"

struct PvVcpuState pv_find(void) {
  unsigned bytes = 0;
  const int node = dt_find_compatible(PV_VCPU_STATE_DT_COMPATIBLE, kNoNode);
  const void* reg = dt_property(node, "reg", &bytes);
  if (reg == NULL || bytes != 16) {
    return (struct PvVcpuState){.found = node != kNoNode};
  }
  const void* stride = dt_property(node, PV_VCPU_STATE_DT_STRIDE, &bytes);
  const void* functions = dt_property(node, PV_VCPU_STATE_DT_FUNCTION_BASE, &bytes);
  return (struct PvVcpuState){.found = true,
                              .region = dt_two_cells(reg, 0),
                              .region_bytes = dt_two_cells(reg, 2),
                              .stride = stride == NULL ? 0 : dt_cell(stride, 0),
                              .functions = functions == NULL ? 0 : dt_cell(functions, 0)};
}

int64_t pv_features(uint32_t function) { return hvc(PV_VCPU_STATE_FEATURES, function, 0, 0); }
int64_t pv_init(void) { return hvc(PV_VCPU_STATE_INIT, 0, 0, 0); }
int64_t pv_release(void) { return hvc(PV_VCPU_STATE_RELEASE, 0, 0, 0); }

unsigned pv_nonzero_bytes(uint64_t addr, uint64_t bytes) {
  unsigned count = 0;
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t value = read64(cached_view(addr + at));
    for (; value != 0; value >>= 8) {
      count += (value & 0xff) != 0;
    }
  }
  return count;
}

// x18 holds the address over the call, which keeps it, as SMCCC says.
#define DEFINE_CALL(name, instruction)                                                                                 \
  void name(struct CallRegisters* registers) {                                                                         \
    register struct CallRegisters* x18 __asm__("x18") = registers;                                                     \
    __asm__ volatile(                                                                                                  \
        "ldp x0, x1, [x18]\n\tldp x2, x3, [x18, #16]\n\tldp x4, x5, [x18, #32]\n\tldp x6, x7, [x18, #48]\n\t"          \
        "ldp x8, x9, [x18, #64]\n\tldp x10, x11, [x18, #80]\n\tldp x12, x13, [x18, #96]\n\t"                           \
        "ldp x14, x15, [x18, #112]\n\tldp x16, x17, [x18, #128]\n\t" instruction                                       \
        "\n\t"                                                                                                         \
        "stp x0, x1, [x18]\n\tstp x2, x3, [x18, #16]\n\tstp x4, x5, [x18, #32]\n\tstp x6, x7, [x18, #48]\n\t"          \
        "stp x8, x9, [x18, #64]\n\tstp x10, x11, [x18, #80]\n\tstp x12, x13, [x18, #96]\n\t"                           \
        "stp x14, x15, [x18, #112]\n\tstp x16, x17, [x18, #128]"                                                       \
        : "+r"(x18)                                                                                                    \
        :                                                                                                              \
        : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", \
          "x17", "memory");                                                                                            \
  }
DEFINE_CALL(call_by_hvc, "hvc #0")
DEFINE_CALL(call_by_smc, "smc #0")
