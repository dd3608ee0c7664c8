// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/host_offer.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using Lines = std::vector<std::string>;

class HostOfferTest : public ::testing::Test {
 protected:
  HostOfferTest() {
    spec_.gic = GicChoice::kV3;
    spec_.cpu = {.sve = true, .sve_quadwords = {1, 2, 4}, .pauth = true, .pmu = true};
  }
  MachineSpec spec_;
  HostOffer host_{.gic_v2 = false,
                  .gic_v3 = true,
                  .sve_quadwords = {1, 2, 3, 4},
                  .pauth = true,
                  .pmu = true,
                  .stolen_time = true,
                  .forwards_hypercalls = true,
                  .ipa_bits = 40};
};

TEST_F(HostOfferTest, AHostWithAllThatTheMachineHasDoesNotDiffer) { EXPECT_EQ(differences(spec_, host_), Lines()); }

TEST_F(HostOfferTest, AHostWithoutAnythingIsToldAllOfIt) {
  host_ = HostOffer();
  host_.gic_v2 = true;
  host_.ipa_bits = 30;
  const Lines expected{"interrupt controller: the machine has GIC v3, this host v2",
                       "SVE: the machine has it, this host does not",
                       "pointer authentication: the machine has it, this host does not",
                       "PMU: the machine has it, this host does not",
                       "stolen time: the machine has it, this host does not",
                       "PV vCPU state (hypercalls that KVM forwards): the machine has it, this host does not",
                       "guest-physical address bits: the machine has 31, this host 30"};
  EXPECT_EQ(differences(spec_, host_), expected);
}

TEST_F(HostOfferTest, WhatTheMachineDoesNotUseIsNotMissed) {
  spec_.cpu = {.sve = false, .sve_quadwords = {}, .pauth = false, .pmu = false};
  spec_.gic = GicChoice::kV2;
  spec_.pv_time = false;
  spec_.pv_vcpu_state = VcpuStateChoice::kOff;
  host_ = HostOffer();
  host_.gic_v2 = true;
  host_.ipa_bits = 40;
  EXPECT_EQ(differences(spec_, host_), Lines());
}

TEST_F(HostOfferTest, EveryVectorLengthOfTheMachineIsNeeded) {
  host_.sve_quadwords = {1, 2};
  EXPECT_EQ(differences(spec_, host_), Lines{"SVE vector lengths (in 128 bits): the machine has 1,2,4, this host 1,2"});
}

TEST_F(HostOfferTest, RamThatEndsExactlyAtTheLastAddressFits) {
  host_.ipa_bits = 32;
  spec_.memory_bytes = 3U << 30;
  EXPECT_EQ(differences(spec_, host_), Lines());
  spec_.memory_bytes += kMemoryUnitBytes;
  EXPECT_EQ(differences(spec_, host_), Lines{"guest-physical address bits: the machine has 33, this host 32"});
}

}  // namespace
}  // namespace tandem
