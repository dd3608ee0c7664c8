// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_report.hpp"

#include <gtest/gtest.h>

#include "vmm/control/control_commands.hpp"

namespace tandem::cli {
namespace {

using control::Json;

Json sample() {
  return control::to_json(
      {.name = "vm1",
       .pid = 77,
       .state = "running",
       .paused_by_user = false,
       .uptime_ns = 2'500'000'000,
       .reset_count = 3,
       .memory_bytes = 128U << 20,
       .gic = "v3",
       .its = true,
       .vcpu_threads = {78, 79},
       .back_ends = {{.kind = "disk", .id = "disk0", .facts = {{"path", "/a b\n"}, {"engine", "io_uring"}}},
                     {.kind = "vsock", .id = "vsock0", .facts = {{"path", "/run/v"}, {"cid", "3"}}}},
       .balloon = BalloonStatus{.target_bytes = 2U << 20, .actual_bytes = 1U << 20},
       .pv_vcpu_state = {.back_end = "zeros", .reason = "no BTF"},
       .pv_time = true,
       .settling = SettlingStatus{.ended = true, .steps = {{"clock", "set forward by 1.000 s\n"}}}});
}

TEST(VmReportTest, StatusTellsEverything) {
  EXPECT_EQ(status_text(sample()),
            "name: vm1\nstate: running\nprocess: 77\nuptime: 2.5 s\nresets: 3\nmemory: 128 MiB\n"
            "interrupt controller: GICv3 with ITS\nvCPU 0: thread 78\nvCPU 1: thread 79\n"
            "PV vCPU state: zeros (no BTF)\nstolen time: on\ndisk disk0: path /a b\\x0a, engine io_uring\n"
            "vsock vsock0: path /run/v, cid 3\nballoon: 1 MiB of 2 MiB given up\nguest's clock: set forward by 1.000 "
            "s\\x0a\n");
}

TEST(VmReportTest, AJobIsToldWithItsPhase) {
  Json status = sample();
  status["job"] = {{"command", "save"}, {"phase", "memory"}, {"done", 1}, {"total", 2}};
  EXPECT_TRUE(status_text(status).ends_with("job: save, memory\n"));
}

TEST(VmReportTest, ListHasALineForEachAndSaysWhoDoesNotAnswer) {
  const std::string text = list_text({sample(), {{"name", "vm2"}}});
  EXPECT_NE(text.find("\nvm1 "), std::string::npos) << text;
  EXPECT_NE(text.find("running"), std::string::npos) << text;
  EXPECT_NE(text.find("128 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("\nvm2 "), std::string::npos) << text;
  EXPECT_NE(text.find("no answer"), std::string::npos) << text;
}

TEST(VmReportTest, TheSocketOfTheVsockDeviceIsFound) {
  EXPECT_EQ(vsock_path_in(sample()), "/run/v");
  EXPECT_EQ(vsock_path_in(Json::object()), "");
}

// What answers may be of another version, or no VM at all.
TEST(VmReportTest, WhatMakesNoSenseIsShownAsFarAsItDoes) {
  for (const Json& odd : {Json(), Json("text"), Json(7), Json::array({1, "x"}), Json{{"vcpus", 5}, {"back_ends", "x"}},
                          Json{{"settling", {{"steps", {1, 2}}}}},
                          Json{{"pv_vcpu_state", nullptr}, {"balloon", Json::object()}, {"job", Json::object()}}}) {
    EXPECT_NE(status_text(odd).find("name: ?"), std::string::npos);
    EXPECT_EQ(vsock_path_in(odd), "");
    EXPECT_FALSE(list_text({odd}).empty());
    EXPECT_FALSE(balloon_text(odd).empty());
  }
}

}  // namespace
}  // namespace tandem::cli
