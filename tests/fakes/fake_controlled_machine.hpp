// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vmm/control/control_commands.hpp"

namespace tandem::control {

/// A machine that does nothing, and notes what it is told.
class FakeControlledMachine final : public ControlledMachine {
 public:
  [[nodiscard]] MachineStatus status() const override { return now; }
  Result<void> pause() override { return note("pause", "paused"); }
  Result<void> resume() override { return note("resume", "running"); }
  Result<void> reset() override {
    ++now.reset_count;
    return note("reset", now.state);
  }
  void press_power_key() override { calls.emplace_back("power key"); }
  void end(std::string why) override { calls.push_back("end: " + why); }
  Result<void> set_balloon_target(uint64_t bytes) override {
    if (!now.balloon) {
      return fail(Errc::kUnsupported, "no balloon");
    }
    now.balloon->target_bytes = bytes;
    return {};
  }
  Result<void> check_console(const std::string& device) override {
    return device != "uart0" ? fail(Errc::kNotFound, "there is no console {}", device)
           : console         ? fail(Errc::kBusy, "another client is attached to the console")
                             : Result<void>();
  }
  void attach_console(const std::string& /*device*/, UniqueFd client) override { console = std::move(client); }

  MachineStatus now{.name = "vm1",
                    .pid = 4242,
                    .state = "running",
                    .paused_by_user = false,
                    .uptime_ns = 1'000,
                    .reset_count = 0,
                    .memory_bytes = 64U << 20,
                    .gic = "v3",
                    .its = true,
                    .vcpu_threads = {4243, 4244},
                    .back_ends = {{.kind = "disk", .id = "disk0", .facts = {{"path", "/a\xff"}}}},
                    .balloon = BalloonStatus{},
                    .pv_vcpu_state = {.back_end = "bpf", .reason = {}},
                    .pv_time = true};
  std::vector<std::string> calls;
  std::optional<Error> failure;  ///< Of pause, resume and reset.
  std::optional<UniqueFd> console;

 private:
  Result<void> note(std::string call, std::string state) {
    calls.push_back(std::move(call));
    if (failure) {
      return std::unexpected(*failure);
    }
    now.state = std::move(state);
    return {};
  }
};

}  // namespace tandem::control
