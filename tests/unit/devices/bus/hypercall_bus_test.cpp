// SPDX-License-Identifier: Apache-2.0
#include "devices/bus/hypercall_bus.hpp"

#include <gtest/gtest.h>

namespace tandem::devices {
namespace {

/// Answers every call with one value, and keeps the last one.
struct FixedAnswer final : HypercallHandler {
  explicit FixedAnswer(uint64_t value) : answer(value) {}
  uint64_t call(const Hypercall& hypercall) override {
    last = hypercall;
    return answer;
  }
  uint64_t answer;
  Hypercall last{};
};

Hypercall hvc(uint32_t function) {
  return {.conduit = Hypercall::Conduit::kHvc, .function = function, .arguments = {1, 2, 3}, .vcpu = 5};
}

class HypercallBusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(bus_.map({.first = 0xc600'0060, .count = 3}, "first", first_, mutex_));
    ASSERT_TRUE(bus_.map({.first = 0xffff'ffff, .count = 1}, "last", last_, mutex_));
  }
  std::mutex mutex_;
  FixedAnswer first_{11};
  FixedAnswer last_{22};
  HypercallBus bus_;
};

TEST_F(HypercallBusTest, ACallReachesTheHandlerOfItsFunction) {
  EXPECT_EQ(bus_.call(hvc(0xc600'0060)), 11U);
  EXPECT_EQ(bus_.call(hvc(0xc600'0062)), 11U);
  EXPECT_EQ(bus_.call(hvc(0xffff'ffff)), 22U);
  EXPECT_EQ(bus_.bad_call_count(), 0U);
}

TEST_F(HypercallBusTest, TheHandlerGetsFunctionArgumentsAndCaller) {
  bus_.call(hvc(0xc600'0061));
  EXPECT_EQ(first_.last.function, 0xc600'0061U);
  EXPECT_EQ(first_.last.arguments[2], 3U);
  EXPECT_EQ(first_.last.vcpu, 5U);
}

TEST_F(HypercallBusTest, AnUnknownFunctionIsNotSupportedAndCounted) {
  EXPECT_EQ(bus_.call(hvc(0xc600'005f)), ~uint64_t{0});
  EXPECT_EQ(bus_.call(hvc(0xc600'0063)), ~uint64_t{0});
  EXPECT_EQ(bus_.call(hvc(0)), ~uint64_t{0});
  EXPECT_EQ(bus_.bad_call_count(), 3U);
}

TEST_F(HypercallBusTest, AKnownFunctionBySmcIsNotSupportedAndCounted) {
  Hypercall call = hvc(0xc600'0060);
  call.conduit = Hypercall::Conduit::kSmc;
  EXPECT_EQ(bus_.call(call), ~uint64_t{0});
  EXPECT_EQ(bus_.bad_call_count(), 1U);
  EXPECT_EQ(first_.last.function, 0U);
}

TEST_F(HypercallBusTest, OverlappingRangesAreRefused) {
  FixedAnswer other(33);
  for (const FunctionRange range : {FunctionRange{0xc600'0062, 1}, FunctionRange{0xc600'0050, 0x11},
                                    FunctionRange{0xc600'0050, 0x100}, FunctionRange{0xc600'0061, 0x10}}) {
    const auto done = bus_.map(range, "other", other, mutex_);
    ASSERT_FALSE(done) << range.first;
    EXPECT_EQ(done.error().code(), Errc::kExists);
  }
  EXPECT_TRUE(bus_.map({.first = 0xc600'0063, .count = 1}, "other", other, mutex_));
}

}  // namespace
}  // namespace tandem::devices
