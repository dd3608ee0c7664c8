// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "vmm/control/job_runner.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"
#include "vmm/machine/machine_status.hpp"

namespace tandem::control {

/// What the control socket does with a machine. Called on the control thread.
class ControlledMachine {
 public:
  virtual ~ControlledMachine() = default;
  [[nodiscard]] virtual MachineStatus status() const = 0;
  virtual Result<void> pause() = 0;
  virtual Result<void> resume() = 0;
  virtual Result<void> reset() = 0;
  /// As a person does at a machine: what follows is up to the guest.
  virtual void press_power_key() = 0;
  /// Ends the VM at once. @param why  one line.
  virtual void end(std::string why) = 0;
  virtual Result<void> set_balloon_target(uint64_t bytes) = 0;
  /// Whether a client could be connected with a console.
  /// @param device  "uart0" or "hvc0".
  /// @errors  Errc::kNotFound: there is no such console. Errc::kBusy: another client has it.
  virtual Result<void> check_console(const std::string& device) = 0;
  /// Connects a client with a console: what it showed last, then what comes; and what the client types. One that came
  /// too late is disconnected. @param client  a stream socket with O_NONBLOCK.
  virtual void attach_console(const std::string& device, UniqueFd client) = 0;
};

/// Takes the client's connection over once the result has been sent; bytes go through it from then on.
struct TakeOver {
  std::function<void(UniqueFd client)> take;
};

/// How a request goes on: with its result, as a job, or beyond the protocol.
using CommandOutcome = std::variant<Json, Job, TakeOver>;

/// One command of the control socket.
struct ControlCommand {
  std::string name;
  /// Called on the control thread, and does not wait. @errors  become those of the request.
  std::function<Result<CommandOutcome>(const Json& arguments)> start;
};

/// The commands for a machine and the job that runs beside it. @pre both outlive the commands.
std::vector<ControlCommand> machine_commands(ControlledMachine& machine, JobRunner& jobs);

/// As `status` tells it.
Json to_json(const MachineStatus& status);

}  // namespace tandem::control
