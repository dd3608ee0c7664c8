// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/lifecycle.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

Lifecycle running() {
  Lifecycle life;
  life.note_running();
  return life;
}

TEST(LifecycleTest, ANewMachineIsCreatedAndNobodyWantsItToStandStill) {
  const Lifecycle life;
  EXPECT_EQ(life.state(), Lifecycle::State::kCreated);
  EXPECT_EQ(life.state_name(), "created");
  EXPECT_FALSE(life.is_to_run());
  EXPECT_FALSE(life.is_to_pause());
}

TEST(LifecycleTest, APauseOfTheUserLastsUntilTheUserEndsIt) {
  Lifecycle life = running();
  life.set_paused_by_user(true);
  EXPECT_TRUE(life.is_to_pause());
  life.note_paused();
  EXPECT_FALSE(life.is_to_pause());
  EXPECT_FALSE(life.is_to_run());
  life.set_paused_by_user(false);
  EXPECT_TRUE(life.is_to_run());
}

TEST(LifecycleTest, AHoldEndsInARunningMachineIfItRanBefore) {
  Lifecycle life = running();
  life.add_hold();
  EXPECT_TRUE(life.is_to_pause());
  life.note_paused();
  life.drop_hold();
  EXPECT_TRUE(life.is_to_run());
}

TEST(LifecycleTest, AHoldOfAMachineThatTheUserPausedLeavesItPaused) {
  Lifecycle life = running();
  life.set_paused_by_user(true);
  life.note_paused();
  life.add_hold();
  life.drop_hold();
  EXPECT_FALSE(life.is_to_run());
}

TEST(LifecycleTest, AMachineThatTheUserResumesWhileItIsHeldRunsAfterTheHold) {
  Lifecycle life = running();
  life.set_paused_by_user(true);
  life.note_paused();
  life.add_hold();
  life.set_paused_by_user(false);
  EXPECT_FALSE(life.is_to_run());
  life.drop_hold();
  EXPECT_TRUE(life.is_to_run());
}

TEST(LifecycleTest, AMachineThatTheUserPausesWhileItIsHeldStaysPaused) {
  Lifecycle life = running();
  life.add_hold();
  life.note_paused();
  life.set_paused_by_user(true);
  life.drop_hold();
  EXPECT_FALSE(life.is_to_run());
}

TEST(LifecycleTest, AnEndedMachineNeitherRunsNorPauses) {
  Lifecycle life = running();
  life.add_hold();
  life.note_ended();
  life.drop_hold();
  EXPECT_FALSE(life.is_to_run());
  life.set_paused_by_user(true);
  EXPECT_FALSE(life.is_to_pause());
  EXPECT_EQ(life.state_name(), "ended");
}

TEST(LifecycleDeathTest, ImpossibleTransitionsAbort) {
  Lifecycle life = running();
  EXPECT_DEATH(life.note_running(), "stands still");
  EXPECT_DEATH(life.drop_hold(), "once");
  life.note_ended();
  EXPECT_DEATH(life.note_paused(), "stand still");
  EXPECT_DEATH(life.note_running(), "start to run|starts to run");
}

}  // namespace
}  // namespace tandem
