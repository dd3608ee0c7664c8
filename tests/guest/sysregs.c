// SPDX-License-Identifier: Apache-2.0
// Optional CPU features are there when the host has them and the command line does not hide them.
// Arguments: sve=0|1 pauth=0|1 pmu=0|1, what this CPU must have.
#include "tests/guest/lib/payload.h"

#define ID_AA64ISAR2_EL1 S3_0_C0_C6_2

static void check(const char* name, bool there) {
  const uint64_t wanted = argument(name, 2);
  if (wanted > 1) {
    skip("sysregs", "nobody said whether %s must be there", name);
    return;
  }
  report(there == (wanted == 1), "sysregs", "%s is %s", name, there ? "there" : "not there");
}

// The instruction works where the ID register offers it.
static void check_sve_runs(void) {
  if (argument("sve", 0) != 1) {
    return;
  }
  const uint64_t kZen = 3UL << 16, kFpen = 3UL << 20;
  uint64_t vector_bytes;
  WRITE_SYSREG(cpacr_el1, kZen | kFpen);
  expect_fault();
  __asm__ volatile(".arch armv8-a+sve\n\trdvl %0, #1" : "=r"(vector_bytes));
  const bool faulted = fault_taken().taken;
  report(!faulted && vector_bytes >= 16 && vector_bytes <= 256, "sysregs", "SVE vectors have %lu bytes",
         faulted ? 0 : vector_bytes);
}

void payload_main(void) {
  const uint64_t isar1 = READ_SYSREG(id_aa64isar1_el1);
  const uint64_t isar2 = READ_SYSREG(S3_0_C0_C6_2);
  const bool address_keys = field(isar1, 4, 8) != 0 || field(isar2, 12, 4) != 0;
  check("sve", field(READ_SYSREG(id_aa64pfr0_el1), 32, 4) != 0);
  check("pauth", address_keys);
  const uint64_t pmu = field(READ_SYSREG(id_aa64dfr0_el1), 8, 4);
  check("pmu", pmu != 0 && pmu != 0xf);
  check_sve_runs();
}
