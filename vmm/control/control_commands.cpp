// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/control_commands.hpp"

#include <utility>

#include "vmm/control/control_protocol.hpp"

namespace tandem::control {
namespace {

constexpr const char* kFirstConsole = "uart0";

/// A command that takes no arguments, and ends at once.
ControlCommand plain(std::string name, std::function<Result<void>()> work) {
  return {.name = std::move(name), .start = [work = std::move(work)](const Json& arguments) -> Result<CommandOutcome> {
            TANDEM_TRY(check_arguments(arguments, {}));
            TANDEM_TRY(work());
            return Json::object();
          }};
}

Json job_status(const JobRunner& jobs) {
  Json status{{"command", jobs.running()}};
  status.update(to_json(jobs.progress()));
  return status;
}

Result<CommandOutcome> tell_status(ControlledMachine& machine, JobRunner& jobs, const Json& arguments) {
  TANDEM_TRY(check_arguments(arguments, {}));
  Json status = to_json(machine.status());
  status["job"] = jobs.running().empty() ? Json(nullptr) : job_status(jobs);
  return status;
}

Result<CommandOutcome> stop(ControlledMachine& machine, const Json& arguments) {
  TANDEM_TRY(check_arguments(arguments, {"force"}));
  if (TANDEM_TRY(argument<bool>(arguments, "force")).value_or(false)) {
    machine.end("stopped by force");
    return Json::object();
  }
  if (machine.status().state != "running") {
    return fail(Errc::kBusy, "the virtual machine is paused: its guest cannot see the power key");
  }
  machine.press_power_key();
  return Json::object();
}

Result<CommandOutcome> balloon(ControlledMachine& machine, const Json& arguments) {
  TANDEM_TRY(check_arguments(arguments, {"target_bytes"}));
  if (const auto target = TANDEM_TRY(argument<uint64_t>(arguments, "target_bytes"))) {
    TANDEM_TRY(machine.set_balloon_target(*target));
  }
  const auto status = machine.status().balloon;
  if (!status) {
    return fail(Errc::kUnsupported, "the virtual machine has no balloon (tandem run --balloon)");
  }
  return Json{{"target_bytes", status->target_bytes}, {"actual_bytes", status->actual_bytes}};
}

Result<CommandOutcome> console(ControlledMachine& machine, const Json& arguments) {
  TANDEM_TRY(check_arguments(arguments, {"device"}));
  const auto device = TANDEM_TRY(argument<std::string>(arguments, "device")).value_or(kFirstConsole);
  TANDEM_TRY(machine.check_console(device));
  return TakeOver{[&machine, device](UniqueFd client) { machine.attach_console(device, std::move(client)); }};
}

Result<CommandOutcome> cancel(JobRunner& jobs, const Json& arguments) {
  TANDEM_TRY(check_arguments(arguments, {"command"}));
  const auto command = TANDEM_TRY(argument<std::string>(arguments, "command"));
  if (!command) {
    return fail(Errc::kInvalidArgument, "the command to cancel is needed");
  }
  TANDEM_TRY(jobs.cancel(*command));
  return Json::object();
}

Json to_json(const BackEndStatus& back_end) {
  Json object{{"kind", back_end.kind}, {"id", back_end.id}};
  for (const auto& [name, value] : back_end.facts) {
    object[name] = value;
  }
  return object;
}

}  // namespace

Json to_json(const MachineStatus& status) {
  Json vcpus = Json::array();
  for (size_t index = 0; index < status.vcpu_threads.size(); ++index) {
    vcpus.push_back({{"index", index}, {"thread", status.vcpu_threads[index]}});
  }
  Json back_ends = Json::array();
  for (const BackEndStatus& back_end : status.back_ends) {
    back_ends.push_back(to_json(back_end));
  }
  Json balloon;
  if (status.balloon) {
    balloon = {{"target_bytes", status.balloon->target_bytes}, {"actual_bytes", status.balloon->actual_bytes}};
  }
  Json settling;
  if (status.settling) {
    settling = {{"ended", status.settling->ended}, {"steps", Json::object()}};
    for (const auto& [subject, outcome] : status.settling->steps) {
      settling["steps"][subject] = outcome;
    }
  }
  return {{"name", status.name},
          {"pid", status.pid},
          {"state", status.state},
          {"paused_by_user", status.paused_by_user},
          {"uptime_ns", status.uptime_ns},
          {"reset_count", status.reset_count},
          {"memory_bytes", status.memory_bytes},
          {"gic", status.gic},
          {"its", status.its},
          {"vcpus", std::move(vcpus)},
          {"back_ends", std::move(back_ends)},
          {"balloon", std::move(balloon)},
          {"pv_vcpu_state", {{"back_end", status.pv_vcpu_state.back_end}, {"reason", status.pv_vcpu_state.reason}}},
          {"pv_time", status.pv_time},
          {"settling", std::move(settling)}};
}

std::vector<ControlCommand> machine_commands(ControlledMachine& machine, JobRunner& jobs) {
  return {{.name = "status", .start = [&](const Json& arguments) { return tell_status(machine, jobs, arguments); }},
          plain("pause", [&] { return machine.pause(); }),
          plain("resume", [&] { return machine.resume(); }),
          plain("reset", [&] { return machine.reset(); }),
          {.name = "stop", .start = [&](const Json& arguments) { return stop(machine, arguments); }},
          {.name = "balloon", .start = [&](const Json& arguments) { return balloon(machine, arguments); }},
          {.name = "console", .start = [&](const Json& arguments) { return console(machine, arguments); }},
          {.name = "cancel", .start = [&](const Json& arguments) { return cancel(jobs, arguments); }}};
}

}  // namespace tandem::control
