// SPDX-License-Identifier: Apache-2.0
// PV vCPU state: discovery and the calls, from every CPU. Argument off=1: the machine is without it, and must look so.
#include "tests/guest/lib/pv_calls.h"

enum { kMsToFinish = 200000, kFirstKept = 1, kFirstKeptIfKvmAnswers = 4, kRegisters = 18, kClassUnknown = 0 };

#define NOT_SUPPORTED ((uint64_t)(int64_t)PV_VCPU_STATE_NOT_SUPPORTED)
#define SMC32(function) ((function) & ~0x40000000U)
#define END_OF_NUMBERS (PV_VCPU_STATE_FEATURES + 16)

static bool off;
static struct PvVcpuState node;
static volatile unsigned finished;
static int64_t addresses[kMaxCpus];

static uint64_t pattern(unsigned index) { return 0x0123456789abcd00ULL + index; }

// Makes a call with a pattern in all other registers; says which of x<first>… changed, 0 for none.
static unsigned changed_by(void (*call)(struct CallRegisters*), uint64_t function, uint64_t x1, unsigned first,
                           uint64_t* result) {
  struct CallRegisters registers;
  for (unsigned i = 0; i < kRegisters; ++i) {
    registers.x[i] = pattern(i);
  }
  registers.x[0] = function;
  registers.x[1] = x1;
  call(&registers);
  *result = registers.x[0];
  unsigned changed = 0;
  for (unsigned i = first; i < kRegisters; ++i) {
    changed += registers.x[i] != (i == 1 ? x1 : pattern(i));
  }
  return changed;
}

static void expect_call(uint64_t function, uint64_t x1, uint64_t wanted, unsigned first_kept, const char* what) {
  uint64_t result = 0;
  const unsigned changed = changed_by(call_by_hvc, function, x1, first_kept, &result);
  report(result == wanted && changed == 0, "pv_calls", "CPU %u: %s (%lx, %lx): %ld, %u other registers changed",
         this_cpu()->index, what, function, x1, (int64_t)result, changed);
}

static void expect_unsupported(uint64_t function, const char* what) {
  expect_call(function, PV_VCPU_STATE_INIT, NOT_SUPPORTED, kFirstKeptIfKvmAnswers, what);
}

static void check_features(void) {
  for (uint32_t function = PV_VCPU_STATE_FEATURES; function <= PV_VCPU_STATE_RELEASE; ++function) {
    expect_call(PV_VCPU_STATE_FEATURES, function, PV_VCPU_STATE_SUCCESS, kFirstKept, "FEATURES of a call");
  }
  expect_call(PV_VCPU_STATE_FEATURES, 0xffffffff00000000ULL | PV_VCPU_STATE_INIT, PV_VCPU_STATE_SUCCESS, kFirstKept,
              "FEATURES looks at w1 only");
  static const uint32_t others[] = {0,
                                    PV_VCPU_STATE_FEATURES - 1,
                                    PV_VCPU_STATE_RELEASE + 1,
                                    SMC32(PV_VCPU_STATE_INIT),
                                    (uint32_t)PSCI_VERSION,
                                    0xffffffff};
  for (unsigned i = 0; i < sizeof others / sizeof others[0]; ++i) {
    expect_call(PV_VCPU_STATE_FEATURES, others[i], NOT_SUPPORTED, kFirstKept, "FEATURES of something else");
  }
}

static void check_unknown(void) {
  for (uint32_t function = PV_VCPU_STATE_RELEASE + 1; function < END_OF_NUMBERS; ++function) {
    expect_unsupported(function, "unknown function");
  }
  for (uint32_t function = PV_VCPU_STATE_FEATURES; function <= PV_VCPU_STATE_RELEASE; ++function) {
    expect_unsupported(SMC32(function), "32-bit calling convention");
  }
}

static void check_smc(void) {
  for (uint32_t function = PV_VCPU_STATE_FEATURES; function <= PV_VCPU_STATE_RELEASE; ++function) {
    uint64_t result = 0;
    expect_fault();
    const unsigned changed = changed_by(call_by_smc, function, PV_VCPU_STATE_INIT, kFirstKeptIfKvmAnswers, &result);
    const struct Fault fault = fault_taken();
    const bool undefined = fault.taken && field(fault.esr, 26, 6) == kClassUnknown;  // a CPU without EL3 may say so
    report(undefined || (!fault.taken && result == NOT_SUPPORTED && changed == 0), "pv_calls",
           "CPU %u: SMC of %x: %s %ld", this_cpu()->index, function, undefined ? "undefined" : "answered",
           (int64_t)result);
  }
}

static unsigned nonzero_in(int64_t addr) { return pv_nonzero_bytes((uint64_t)addr, PV_VCPU_STATE_RECORD_BYTES); }

static bool is_active_and_sound(PvRecord record) {
  return record->revision == 0 && record->attributes == 0 && record->preempted == 0 && record->reserved == 0;
}

// Leaves the record active.
static void check_init_and_release(void) {
  const unsigned index = this_cpu()->index;
  expect_call(PV_VCPU_STATE_RELEASE, 0, PV_VCPU_STATE_SUCCESS, kFirstKept, "RELEASE without INIT");
  const int64_t addr = pv_init();
  addresses[index] = addr;
  const uint64_t offset = (uint64_t)addr - node.region;
  report(addr > 0 && (uint64_t)addr >= node.region && offset + PV_VCPU_STATE_RECORD_BYTES <= node.region_bytes,
         "pv_calls", "CPU %u: INIT returns an address in the region: %lx", index, (uint64_t)addr);
  report(offset % node.stride == 0, "pv_calls", "CPU %u: the record is a multiple of the stride away", index);
  expect_call(PV_VCPU_STATE_INIT, 0, (uint64_t)addr, kFirstKept, "INIT again");
  report(is_active_and_sound(pv_record(addr)), "pv_calls", "CPU %u: an active record is sound", index);
  expect_call(PV_VCPU_STATE_RELEASE, 0, PV_VCPU_STATE_SUCCESS, kFirstKept, "RELEASE");
  report(nonzero_in(addr) == 0, "pv_calls", "CPU %u: a released record is zero", index);
  expect_call(PV_VCPU_STATE_RELEASE, 0, PV_VCPU_STATE_SUCCESS, kFirstKept, "RELEASE again");
  expect_call(PV_VCPU_STATE_INIT, 0, (uint64_t)addr, kFirstKept, "INIT after RELEASE");
}

static void check_this_cpu(void* unused) {
  (void)unused;
  if (off) {
    for (uint32_t function = PV_VCPU_STATE_FEATURES; function <= PV_VCPU_STATE_RELEASE; ++function) {
      expect_unsupported(function, "the interface is off");
    }
  } else {
    check_features();
    check_init_and_release();
  }
  check_unknown();
  check_smc();
  __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

static void check_node(void) {
  report(node.found, "pv_calls", "the device tree has %s", PV_VCPU_STATE_DT_COMPATIBLE);
  report(node.region == 0x0b000000 && node.region_bytes == 0x10000, "pv_calls", "the region is %lx, %lx bytes",
         node.region, node.region_bytes);
  report(node.stride == PV_VCPU_STATE_RECORD_BYTES, "pv_calls", "the stride is %u", node.stride);
  report(node.functions == PV_VCPU_STATE_FEATURES, "pv_calls", "the functions begin at %x", node.functions);
  report(node.region + node.region_bytes <= ram_base(), "pv_calls", "the region is no RAM");
}

static void check_addresses(unsigned count) {
  unsigned equal = 0;
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned j = 0; j < i; ++j) {
      equal += addresses[i] == addresses[j];
    }
  }
  report(equal == 0, "pv_calls", "each of %u CPUs has a record of its own", count);
}

void payload_main(void) {
  const unsigned count = cpu_count();
  off = argument("off", 0) != 0;
  node = pv_find();
  if (off) {
    report(!node.found, "pv_calls", "the device tree does not have %s", PV_VCPU_STATE_DT_COMPATIBLE);
  } else {
    check_node();
  }
  check_this_cpu(NULL);
  for (unsigned index = 1; index < count; ++index) {
    start_cpu(index, check_this_cpu, NULL);
    report(wait_until(&finished, index + 1, kMsToFinish), "pv_calls", "CPU %u is done", index);
  }
  if (!off) {
    check_addresses(count);
  }
}
