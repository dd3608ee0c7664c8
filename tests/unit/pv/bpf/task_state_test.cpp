// SPDX-License-Identifier: Apache-2.0
#include "pv/bpf/task_state.h"

#include <gtest/gtest.h>

namespace tandem::pv {
namespace {

/// A value of prev_state as the kernel composes it (include/linux/sched.h of Linux 6.12).
struct State {
  const char* name;
  unsigned value;
  int wants_to_run;
};

constexpr unsigned kUninterruptible = 0x2;
constexpr unsigned kWakekill = 0x100;
constexpr unsigned kNoload = 0x400;
constexpr unsigned kFreezable = 0x2000;

constexpr State kStates[] = {
    {"Running", 0, 1},
    {"Interruptible", 0x1, 0},
    {"InterruptibleFreezable", 0x1 | kFreezable, 0},
    {"Uninterruptible", kUninterruptible, 1},
    {"UninterruptibleFreezable", kUninterruptible | kFreezable, 1},
    {"Killable", kUninterruptible | kWakekill, 1},
    {"KillableFreezable", kUninterruptible | kWakekill | kFreezable, 1},
    {"Idle", kUninterruptible | kNoload, 0},
    {"IdleFreezable", kUninterruptible | kNoload | kFreezable, 0},
    {"Stopped", 0x4 | kWakekill, 0},
    {"Traced", 0x8, 0},
    {"Parked", 0x40, 0},
    {"Dead", 0x80, 0},
    {"DeadAndNoload", 0x80 | kNoload, 0},
    {"Waking", 0x200, 0},
    {"New", 0x800, 0},
    {"RtlockWait", 0x1000, 1},
    {"Frozen", 0x8000, 0},
};

class TaskStateTest : public testing::TestWithParam<State> {};

TEST_P(TaskStateTest, WishToRunFollowsFromTheState) {
  EXPECT_EQ(tandem_task_wants_to_run(GetParam().value), GetParam().wants_to_run);
}

INSTANTIATE_TEST_SUITE_P(All, TaskStateTest, testing::ValuesIn(kStates),
                         [](const auto& state) { return std::string(state.param.name); });

}  // namespace
}  // namespace tandem::pv
