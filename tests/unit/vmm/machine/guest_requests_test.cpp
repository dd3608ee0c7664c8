// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/guest_requests.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace tandem {
namespace {

using Kind = GuestRequest::Kind;

TEST(GuestRequestsTest, RequestsAreTakenInTheirOrderAndOnce) {
  GuestRequests requests;
  requests.add({.kind = Kind::kReset, .text = "SYSTEM_RESET", .resets_before = 2});
  requests.add({.kind = Kind::kPowerOff, .text = {}});
  const auto taken = requests.take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].kind, Kind::kReset);
  EXPECT_EQ(taken[0].resets_before, 2U);
  EXPECT_EQ(taken[1].kind, Kind::kPowerOff);
  EXPECT_TRUE(requests.take().empty());
}

TEST(GuestRequestsTest, ManyThreadsLoseNoRequest) {
  constexpr size_t kEach = 100;
  GuestRequests requests;
  const auto ask = [&] {
    for (size_t count = 0; count < kEach; ++count) {
      requests.add({.kind = Kind::kCrash, .text = "boom"});
    }
  };
  std::thread one(ask);
  std::thread other(ask);
  one.join();
  other.join();
  EXPECT_EQ(requests.take().size(), 2 * kEach);
}

}  // namespace
}  // namespace tandem
