// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "vmm/control/control_commands.hpp"
#include "vmm/control/control_server.hpp"
#include "vmm/control/guest_settler.hpp"
#include "vmm/control/job_runner.hpp"
#include "vmm/control/vm_registry.hpp"
#include "vmm/machine/machine.hpp"
#include "vmm/migration/difference_base.hpp"

namespace tandem::cli {

/// What the guest's agent is to be asked for.
inline control::GuestSettler::Order settling_order(const MachineSpec& spec, bool step_clock) {
  return {.vsock_path = spec.vsock ? spec.vsock->path : std::string(), .step_clock = step_clock};
}

/// A machine that other processes may control by its name: what the control socket needs of it, and the socket.
class ControlledVm final : public control::ControlledMachine {
 public:
  /// Serves the control socket on the machine's control loop, once that runs.
  /// @param base  what differences are taken to when the machine is saved.
  /// @param settler  for a guest that ran before, here or elsewhere; null: it starts here.
  /// @pre `machine`, `place` and `base` outlive it.
  static Result<std::unique_ptr<ControlledVm>> create(Machine& machine, const control::VmRegistration& place,
                                                      migration::DifferenceBase& base,
                                                      std::unique_ptr<control::GuestSettler> settler = nullptr);
  ControlledVm(const ControlledVm&) = delete;
  ControlledVm& operator=(const ControlledVm&) = delete;
  ~ControlledVm() override = default;

  /// Says that the guest goes on, as `Machine::run` is told to let it.
  void note_guest_runs() {
    if (settler_) {
      settler_->start();
    }
  }
  /// Ends the job that runs, and sends clients their last replies. @pre `Machine::run` has returned.
  void finish() { server_->finish(); }

  [[nodiscard]] MachineStatus status() const override;
  Result<void> pause() override { return machine_.pause(); }
  Result<void> resume() override;
  Result<void> reset() override { return machine_.reset(); }
  void press_power_key() override { machine_.devices().press_power_key(); }
  void end(std::string why) override { machine_.end(MachineEnd::Kind::kStopped, std::move(why)); }
  Result<void> set_balloon_target(uint64_t bytes) override { return machine_.devices().set_balloon_target(bytes); }
  Result<void> check_console(const std::string& device) override { return machine_.devices().check_console(device); }
  void attach_console(const std::string& device, UniqueFd client) override {
    machine_.devices().attach_console(device, std::move(client));
  }

 private:
  ControlledVm(Machine& machine, std::unique_ptr<control::GuestSettler> settler)
      : machine_(machine), settler_(std::move(settler)) {}

  Machine& machine_;
  std::unique_ptr<control::GuestSettler> settler_;
  std::unique_ptr<control::JobRunner> jobs_;
  std::unique_ptr<control::ControlServer> server_;  // after jobs_, which it uses
};

}  // namespace tandem::cli
