// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_report.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "vmm/cli/error_line.hpp"
#include "vmm/lib/size_text/size_text.hpp"

namespace tandem::cli {
namespace {

using control::Json;

// A VM of another version may leave things out, or tell them in another way: what is not there is shown as "?".

std::string text_of(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) {
    return "?";
  }
  return escape_controls(it->is_string() ? it->get_ref<const std::string&>()
                                         : it->dump(-1, ' ', false, Json::error_handler_t::replace));
}

uint64_t number_of(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

Json part_of(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() ? *it : Json();
}

std::string uptime_of(const Json& status) {
  constexpr double kNsPerS = 1e9;
  return fmt::format("{:.1f} s", static_cast<double>(number_of(status, "uptime_ns")) / kNsPerS);
}

std::string size_of(const Json& object, const char* name) { return format_size(number_of(object, name)); }

std::string back_end_text(const Json& back_end) {
  std::string facts;
  for (const auto& [name, value] : back_end.items()) {
    if (name != "kind" && name != "id") {
      facts +=
          fmt::format("{}{} {}", facts.empty() ? "" : ", ", escape_controls(name), text_of(back_end, name.c_str()));
    }
  }
  return fmt::format("{} {}: {}\n", text_of(back_end, "kind"), text_of(back_end, "id"), facts);
}

std::string pv_vcpu_state_text(const Json& state) {
  const std::string reason = text_of(state, "reason");
  return fmt::format("PV vCPU state: {}{}\n", text_of(state, "back_end"),
                     reason.empty() || reason == "?" ? "" : " (" + reason + ")");
}

std::string settling_text(const Json& settling) {
  std::string text;
  const Json steps = part_of(settling, "steps");
  if (steps.is_object()) {
    for (const auto& [subject, outcome] : steps.items()) {
      text += fmt::format("guest's {}: {}\n", escape_controls(subject), text_of(steps, subject.c_str()));
    }
  }
  return text;
}

std::string job_text(const Json& job) {
  return job.is_object() ? fmt::format("job: {}, {}\n", text_of(job, "command"), text_of(job, "phase")) : "";
}

}  // namespace

std::string status_text(const Json& status) {
  std::string text = fmt::format(
      "name: {}\nstate: {}\nprocess: {}\nuptime: {}\nresets: {}\nmemory: {}\ninterrupt controller: GIC{}{}\n",
      text_of(status, "name"), text_of(status, "state"), text_of(status, "pid"), uptime_of(status),
      number_of(status, "reset_count"), size_of(status, "memory_bytes"), text_of(status, "gic"),
      part_of(status, "its") == Json(true) ? " with ITS" : "");
  for (const Json& vcpu : part_of(status, "vcpus")) {
    text += fmt::format("vCPU {}: thread {}\n", text_of(vcpu, "index"), text_of(vcpu, "thread"));
  }
  text += pv_vcpu_state_text(part_of(status, "pv_vcpu_state"));
  text += fmt::format("stolen time: {}\n", part_of(status, "pv_time") == Json(true) ? "on" : "off");
  for (const Json& back_end : part_of(status, "back_ends")) {
    text += back_end_text(back_end);
  }
  if (const Json balloon = part_of(status, "balloon"); balloon.is_object()) {
    text += "balloon: " + balloon_text(balloon);
  }
  return text + settling_text(part_of(status, "settling")) + job_text(part_of(status, "job"));
}

std::string list_text(const std::vector<Json>& statuses) {
  std::string text =
      fmt::format("{:20} {:8} {:12} {:>5} {:>10} {:>12}\n", "NAME", "PID", "STATE", "VCPUS", "MEMORY", "UPTIME");
  for (const Json& status : statuses) {
    if (!status.contains("state")) {
      text += fmt::format("{:20} {:8} {}\n", text_of(status, "name"), "?", "no answer");
      continue;
    }
    text += fmt::format("{:20} {:8} {:12} {:>5} {:>10} {:>12}\n", text_of(status, "name"), text_of(status, "pid"),
                        text_of(status, "state"), part_of(status, "vcpus").size(), size_of(status, "memory_bytes"),
                        uptime_of(status));
  }
  return text;
}

std::string vsock_path_in(const Json& status) {
  for (const Json& back_end : part_of(status, "back_ends")) {
    const Json path = part_of(back_end, "path");
    if (part_of(back_end, "kind") == Json("vsock") && path.is_string()) {
      return path.get<std::string>();
    }
  }
  return {};
}

std::string balloon_text(const Json& balloon) {
  return fmt::format("{} of {} given up\n", size_of(balloon, "actual_bytes"), size_of(balloon, "target_bytes"));
}

}  // namespace tandem::cli
