// SPDX-License-Identifier: Apache-2.0
#include "pv/abi/pv_vcpu_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

extern "C" unsigned long pv_vcpu_state_record_bytes_in_c(void);

namespace tandem::pv {
namespace {

static_assert(std::is_trivially_copyable_v<pv_vcpu_state_record> && std::is_standard_layout_v<pv_vcpu_state_record>);

TEST(PvVcpuStateAbiTest, CAndCppAgreeOnTheRecord) {
  EXPECT_EQ(pv_vcpu_state_record_bytes_in_c(), sizeof(pv_vcpu_state_record));
}

// SMCCC (Arm DEN 0028), "Function ID": bit 31 fast, bit 30 SMC64, 29:24 owner (6: vendor-specific hypervisor), 23:16 zero.
TEST(PvVcpuStateAbiTest, TheCallsAreFastSmc64CallsOfTheHypervisor) {
  for (const uint32_t function : {PV_VCPU_STATE_FEATURES, PV_VCPU_STATE_INIT, PV_VCPU_STATE_RELEASE}) {
    EXPECT_EQ(function >> 16, 0xc600U);
  }
}

TEST(PvVcpuStateAbiTest, TheCallsAreInARow) {
  EXPECT_EQ(PV_VCPU_STATE_INIT, PV_VCPU_STATE_FEATURES + 1);
  EXPECT_EQ(PV_VCPU_STATE_RELEASE, PV_VCPU_STATE_FEATURES + 2);
  EXPECT_EQ(PV_VCPU_STATE_CALLS, 3);
}

}  // namespace
}  // namespace tandem::pv
