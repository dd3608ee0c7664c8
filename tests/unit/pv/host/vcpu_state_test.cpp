// SPDX-License-Identifier: Apache-2.0
#include "pv/host/vcpu_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "pv/host/vcpu_state_state.hpp"
#include "tests/fakes/fake_vcpu_state_backend.hpp"

namespace tandem::pv {
namespace {

using devices::FdtNode;
using devices::Hypercall;

constexpr auto kRegion = GuestRange::fixed(0x0b00'0000, kVcpuStateRegionBytes);
constexpr unsigned kVcpus = 4;
constexpr uint64_t kNotSupported = ~uint64_t{0};

class VcpuStateTest : public ::testing::Test {
 protected:
  uint64_t call(uint32_t function, unsigned vcpu = 0, uint64_t argument = 0) {
    return state_.call(
        {.conduit = Hypercall::Conduit::kHvc, .function = function, .arguments = {argument, 0, 0}, .vcpu = vcpu});
  }
  uint64_t init(unsigned vcpu) { return call(PV_VCPU_STATE_INIT, vcpu); }
  uint64_t release(unsigned vcpu) { return call(PV_VCPU_STATE_RELEASE, vcpu); }

  FakeVcpuStateBackend backend_;
  VcpuState state_{backend_, kRegion, kVcpus};
};

struct Feature {
  const char* name;
  uint64_t argument;
  uint64_t result;
};

class FeaturesTest : public VcpuStateTest, public ::testing::WithParamInterface<Feature> {};

TEST_P(FeaturesTest, Answers) { EXPECT_EQ(call(PV_VCPU_STATE_FEATURES, 0, GetParam().argument), GetParam().result); }

INSTANTIATE_TEST_SUITE_P(
    Functions, FeaturesTest,
    ::testing::Values(Feature{"Features", PV_VCPU_STATE_FEATURES, 0}, Feature{"Init", PV_VCPU_STATE_INIT, 0},
                      Feature{"Release", PV_VCPU_STATE_RELEASE, 0},
                      Feature{"UpperHalfIsIgnored", 0xffff'ffff'c600'0061, 0},
                      Feature{"Below", 0xc600'005f, kNotSupported}, Feature{"Above", 0xc600'0063, kNotSupported},
                      Feature{"The32BitOne", 0x8600'0061, kNotSupported}, Feature{"Zero", 0, kNotSupported}),
    [](const auto& row) { return row.param.name; });

TEST_F(VcpuStateTest, FeaturesActivatesNothing) {
  call(PV_VCPU_STATE_FEATURES, 1, PV_VCPU_STATE_INIT);
  EXPECT_TRUE(backend_.active.empty());
}

TEST_F(VcpuStateTest, InitReturnsTheAddressOfTheCallersRecordAndActivatesIt) {
  EXPECT_EQ(init(0), 0x0b00'0000U);
  EXPECT_EQ(init(3), 0x0b00'00c0U);
  EXPECT_EQ(backend_.active, (std::set<unsigned>{0, 3}));
  EXPECT_TRUE(state_.is_active(3));
  EXPECT_FALSE(state_.is_active(1));
}

TEST_F(VcpuStateTest, ASecondInitReturnsTheSameAndLeavesTheRecord) {
  const uint64_t address = init(2);
  backend_.preempt(2);
  EXPECT_EQ(init(2), address);
  EXPECT_EQ(backend_.record(2).preempt_count, 1U);
  EXPECT_EQ(backend_.activations, 1U);
}

TEST_F(VcpuStateTest, ReleaseDeactivatesTheCallersRecordOnly) {
  init(0);
  init(1);
  backend_.preempt(0);
  backend_.preempt(1);
  EXPECT_EQ(release(1), uint64_t{PV_VCPU_STATE_SUCCESS});
  EXPECT_EQ(backend_.record(1).preempted, 0U);
  EXPECT_EQ(backend_.record(0).preempted, 1U);
  EXPECT_EQ(backend_.active, std::set<unsigned>{0});
}

TEST_F(VcpuStateTest, ReleaseWithoutInitSucceeds) {
  EXPECT_EQ(release(1), uint64_t{PV_VCPU_STATE_SUCCESS});
  EXPECT_EQ(release(1), uint64_t{PV_VCPU_STATE_SUCCESS});
}

TEST_F(VcpuStateTest, InitAfterReleaseStartsFromZero) {
  init(1);
  backend_.preempt(1);
  release(1);
  EXPECT_EQ(init(1), 0x0b00'0040U);
  EXPECT_EQ(backend_.record(1).preempt_count, 0U);
  EXPECT_EQ(backend_.activations, 2U);
}

TEST_F(VcpuStateTest, AFunctionThatIsNoneOfTheThreeIsNotSupported) {
  EXPECT_EQ(call(PV_VCPU_STATE_RELEASE + 1), kNotSupported);
  EXPECT_EQ(call(PV_VCPU_STATE_FEATURES - 1), kNotSupported);
}

TEST_F(VcpuStateTest, ResetReleasesEveryVcpuAndZeroesTheRegion) {
  init(0);
  init(3);
  backend_.preempt(3);
  ASSERT_TRUE(state_.reset());
  EXPECT_TRUE(backend_.active.empty());
  EXPECT_TRUE(backend_.all_zero());
  EXPECT_FALSE(state_.is_active(3));
}

TEST_F(VcpuStateTest, StoresAreRefusedAndChangeNothing) {
  init(0);
  backend_.preempt(0);
  for (const unsigned width : {1U, 2U, 4U, 8U}) {
    EXPECT_EQ(state_.write({.offset = 8, .width_bytes = width}, 0), std::unexpected(devices::BadAccess::kReadOnly));
  }
  EXPECT_EQ(backend_.record(0).preempted, 1U);
}

TEST_F(VcpuStateTest, ReadsSeeTheMemory) {
  init(1);
  backend_.preempt(1);
  EXPECT_EQ(state_.read({.offset = 0x48, .width_bytes = 4}), 1U);
  EXPECT_EQ(state_.read({.offset = 0x50, .width_bytes = 8}), 1U);
  EXPECT_EQ(state_.read({.offset = kVcpuStateRegionBytes - 8, .width_bytes = 8}), 0U);
}

TEST_F(VcpuStateTest, RestoreArmsWhatWasActiveWithRecordsAtZero) {
  init(0);
  init(2);
  backend_.preempt(2);
  FakeVcpuStateBackend backend;
  VcpuState target(backend, kRegion, kVcpus);
  ASSERT_TRUE(target.restore(state_.save().value()));
  EXPECT_EQ(backend.active, (std::set<unsigned>{0, 2}));
  EXPECT_TRUE(backend.all_zero());
}

TEST_F(VcpuStateTest, RestoreReplacesWhatWasActive) {
  const StateRecord nothing_active = state_.save().value();
  init(1);
  backend_.preempt(1);
  ASSERT_TRUE(state_.restore(nothing_active));
  EXPECT_TRUE(backend_.active.empty());
  EXPECT_TRUE(backend_.all_zero());
}

TEST_F(VcpuStateTest, RestoreRezeroesARecordThatStaysActive) {
  init(1);
  backend_.preempt(1);
  ASSERT_TRUE(state_.restore(state_.save().value()));
  EXPECT_TRUE(state_.is_active(1));
  EXPECT_TRUE(backend_.all_zero());
}

struct BadSet {
  const char* name;
  std::vector<uint32_t> active;
};

class BadActiveSetTest : public VcpuStateTest, public ::testing::WithParamInterface<BadSet> {};

TEST_P(BadActiveSetTest, IsRefusedAndNothingIsActivated) {
  const auto done = state_.restore(save_state(PvVcpuStateV1{.active = GetParam().active}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::kCorrupt);
  EXPECT_TRUE(backend_.active.empty());
}

INSTANTIATE_TEST_SUITE_P(Sets, BadActiveSetTest,
                         ::testing::Values(BadSet{"AVcpuTooMany", {0, kVcpus}},
                                           BadSet{"TheLargestNumber", {UINT32_MAX}}, BadSet{"TheSameTwice", {1, 1}},
                                           BadSet{"NotAscending", {2, 1}}),
                         [](const auto& row) { return row.param.name; });

TEST_F(VcpuStateTest, TheNodeHasRegionStrideAndFunctions) {
  const FdtNode node = state_.describe();
  EXPECT_EQ(node.name(), "pv-vcpu-state@b000000");
  FdtNode expected("expected");
  expected.add_string("compatible", "tandem,pv-vcpu-state-1.0").add_reg(kRegion);
  expected.add_u32("tandem,record-stride", 64).add_u32("tandem,function-base", 0xc600'0060);
  ASSERT_EQ(node.properties().size(), expected.properties().size());
  for (const FdtNode::Property& property : expected.properties()) {
    ASSERT_NE(node.find(property.name), nullptr) << property.name;
    EXPECT_EQ(node.find(property.name)->value, property.value) << property.name;
  }
}

}  // namespace
}  // namespace tandem::pv
