// SPDX-License-Identifier: Apache-2.0
#include "pv/host/zero_vcpu_state_backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::pv {
namespace {

TEST(ZeroVcpuStateBackendTest, ItsRegionHasThePromisedSizeAndAlignmentAndReadsZero) {
  const auto backend = ZeroVcpuStateBackend::create().value();
  EXPECT_EQ(backend->region().size(), kVcpuStateRegionBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(backend->region().data()) % host_page_size(), 0U);
  EXPECT_TRUE(backend->attach_thread(0));
  backend->activate(0);
  EXPECT_TRUE(std::ranges::all_of(backend->region(), [](std::byte byte) { return byte == std::byte{0}; }));
  backend->deactivate(0);
  backend->detach_thread(0);
}

TEST(ZeroVcpuStateBackendTest, SaysThatItReportsNothing) {
  EXPECT_FALSE(ZeroVcpuStateBackend::create().value()->capabilities().reports_preemption);
}

}  // namespace
}  // namespace tandem::pv
