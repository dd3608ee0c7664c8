// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <thread>

#include "vmm/cli/agent_report.hpp"
#include "vmm/cli/connection_relay.hpp"
#include "vmm/cli/console_session.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/cli/exit_status.hpp"
#include "vmm/cli/progress.hpp"
#include "vmm/cli/vm_report.hpp"
#include "vmm/control/agent_client.hpp"
#include "vmm/control/control_client.hpp"
#include "vmm/control/vm_registry.hpp"
#include "vmm/migration/migration_address.hpp"

namespace tandem::cli {
namespace {

using control::ControlClient;
using control::Json;
using std::chrono::seconds;

/// How long `list` waits for each VM.
constexpr seconds kListPatience{3};
/// How long a guest has to power itself off, if nothing is said.
constexpr seconds kStopTimeout{60};
/// How long the power key alone is trusted.
constexpr seconds kPowerKeyPatience{5};
/// How long the process of a VM that has ended may still be there.
constexpr seconds kProcessPatience{10};

Result<void> print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return fail_errno("standard output");
  }
  return {};
}

/// Shows what a command answered: in JSON, or in `text`.
Result<void> show(const VmRequest& request, const Json& answer, const std::string& text) {
  return print(request.json ? as_json(answer) + '\n' : text);
}

Result<ControlClient> connect(const VmRequest& request) {
  return ControlClient::connect(control::runtime_directory(), request.name);
}

Result<void> list(const VmRequest& request) {
  const std::string directory = control::runtime_directory();
  std::vector<Json> statuses;
  for (const std::string& name : TANDEM_TRY(control::registered_vms(directory))) {
    auto client = ControlClient::connect(directory, name);
    auto status = client ? client->ask("status", Json::object(), Deadline(kListPatience))
                         : Result<Json>(std::unexpected(client.error()));
    if (status && status->is_object()) {
      statuses.push_back(std::move(*status));
    } else if (control::is_registered(directory, name)) {
      statuses.push_back({{"name", name}});  // else it has ended meanwhile
    }
  }
  return show(request, Json(statuses), list_text(statuses));
}

Result<void> tell_status(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  const Json status = TANDEM_TRY(client.ask("status", Json::object()));
  return show(request, status, status_text(status));
}

/// pause, resume, reset: what has nothing to tell.
Result<void> perform(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  return show(request, TANDEM_TRY(client.ask(request.command, Json::object())), "");
}

Result<void> balloon(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  Json arguments = Json::object();
  if (request.target_bytes) {
    arguments["target_bytes"] = *request.target_bytes;
  }
  const Json answer = TANDEM_TRY(client.ask("balloon", arguments));
  return show(request, answer, balloon_text(answer));
}

/// After the VM has said that it ends, waits until its name is free.
void wait_until_gone(const std::string& name) {
  constexpr std::chrono::milliseconds kPause{10};
  const Deadline deadline(kProcessPatience);
  while (control::is_registered(control::runtime_directory(), name) && !deadline.has_passed()) {
    std::this_thread::sleep_for(kPause);
  }
}

/// The path for the VM's process, which is somewhere else.
Result<std::string> absolute(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::absolute(path, error);
  if (error) {
    return std::unexpected(Error::from_errno(path, error.value()));
  }
  return found.string();
}

/// Asks for what takes long, and shows on a terminal how far it is.
Result<Json> ask_and_watch(ControlClient& client, const std::string& command, const Json& arguments) {
  ProgressBar bar;
  const auto show_progress = [&bar](const control::JobProgress& progress) {
    const std::string phase = escape_controls(progress.phase);
    [[maybe_unused]] const auto shown =
        bar.report({.phase = phase, .done_bytes = progress.done, .total_bytes = progress.total});
  };
  return client.ask(command, arguments, Deadline(), show_progress);
}

Result<void> save(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  Json arguments{{"directory", TANDEM_TRY(absolute(request.directory))},
                 {"replace", request.replace},
                 {"stop", request.stop},
                 {"freeze", request.freeze}};
  if (!request.base.empty()) {
    arguments["base"] = TANDEM_TRY(absolute(request.base));
  }
  const Json answer = TANDEM_TRY(ask_and_watch(client, "save", arguments));
  if (request.stop) {
    wait_until_gone(request.name);
  }
  return show(request, answer, "");
}

/// How far a migration is, if there is one.
Result<void> tell_migration(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  const Json status = TANDEM_TRY(client.ask("status", Json::object()));
  const Json job = status.value("job", Json());
  if (!job.is_object() || job.value("command", "") != "migrate") {
    return fail(Errc::kNotFound, "no migration is under way");
  }
  constexpr uint64_t kMiB = 1U << 20;
  const std::string details = job.value("details", "");
  return show(request, job,
              fmt::format("{}: {} of {} MiB{}{}\n", job.value("phase", ""), job.value("done", uint64_t{0}) / kMiB,
                          job.value("total", uint64_t{0}) / kMiB, details.empty() ? "" : ", ", details));
}

/// The address for the VM's process, which is somewhere else, and does not have what this one has inherited.
struct ReachableAddress {
  std::string text;
  std::unique_ptr<ConnectionRelay> relay;
};

Result<ReachableAddress> reachable_address(const VmRequest& request) {
  auto address = TANDEM_TRY(migration::MigrationAddress::parse(request.address));
  if (address.kind == migration::MigrationAddress::Kind::kFd) {
    UniqueFd connection = TANDEM_TRY(migration::connect_to(address, Deadline()));
    auto relay = TANDEM_TRY(ConnectionRelay::create(
        std::move(connection), fmt::format("{}/.migrate-{}", control::runtime_directory(), ::getpid())));
    std::string text = "unix:" + relay->path();
    return ReachableAddress{.text = std::move(text), .relay = std::move(relay)};
  }
  std::error_code error;
  if (address.kind == migration::MigrationAddress::Kind::kUnix) {
    const auto path = std::filesystem::absolute(address.path, error);
    address = TANDEM_TRY(migration::MigrationAddress::parse("unix:" + path.string()));
  }
  return ReachableAddress{.text = address.text, .relay = nullptr};
}

Json migration_arguments(const VmRequest& request, const std::string& address) {
  Json arguments{{"address", address}, {"check", request.check}, {"verify", request.verify}};
  if (request.downtime) {
    arguments["downtime_ms"] = static_cast<uint64_t>(request.downtime->count());
  }
  if (request.timeout) {
    arguments["timeout_ms"] = static_cast<uint64_t>(std::chrono::milliseconds(*request.timeout).count());
  }
  if (request.compress) {
    arguments["compress"] = "zstd";
  }
  return arguments;
}

Result<void> show_check(const VmRequest& request, const Json& answer) {
  std::string text;
  for (const Json& difference : answer.value("differences", Json::array())) {
    text += difference.is_string() ? difference.get<std::string>() + '\n' : "";
  }
  TANDEM_TRY(show(request, answer, text.empty() ? "the receiver can have this machine\n" : text));
  return text.empty() ? Result<void>() : fail(Errc::kUnsupported, "the receiver cannot have this machine");
}

Result<void> migrate(const VmRequest& request) {
  if (request.of_migration == VmRequest::OfMigration::kStatus) {
    return tell_migration(request);
  }
  ControlClient client = TANDEM_TRY(connect(request));
  if (request.of_migration == VmRequest::OfMigration::kCancel) {
    return show(request, TANDEM_TRY(client.ask("cancel", {{"command", "migrate"}})), "");
  }
  const ReachableAddress address = TANDEM_TRY(reachable_address(request));
  const Json answer = TANDEM_TRY(ask_and_watch(client, "migrate", migration_arguments(request, address.text)));
  if (request.check) {
    return show_check(request, answer);
  }
  wait_until_gone(request.name);
  return show(request, answer, answer.value("text", ""));
}

Result<void> attach_console(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  TANDEM_TRY(client.ask("console", {{"device", request.device}}));
  std::string shown_first = client.take_rest();
  ConsoleSession session(std::move(client).take_socket());
  const auto end = TANDEM_TRY(session.run(std::move(shown_first)));
  print_error_line(end == ConsoleSession::End::kDetached ? "console: detached"
                                                         : "console: the virtual machine has closed it");
  return {};
}

/// Asks the agent for a shutdown, if there is one.
Result<void> ask_agent(const std::string& vsock_path) {
  auto agent = TANDEM_TRY(control::AgentClient::connect(vsock_path, seconds(0)));
  TANDEM_TRY(agent.ask<agent::Done>(agent::PowerRequest{.reboots = false, .forced = false}));
  return {};
}

/// Lets the guest end the VM. @return false: it did not in time.
Result<bool> stop_gently(const VmRequest& request, ControlClient& client) {
  const Json status = TANDEM_TRY(client.ask("status", Json::object()));
  TANDEM_TRY(client.ask("stop", Json::object()));
  const seconds timeout = request.timeout.value_or(kStopTimeout);
  const Deadline deadline(timeout);
  if (TANDEM_TRY(client.wait_for_end(Deadline(std::min(timeout, kPowerKeyPatience))))) {
    return true;
  }
  if (const std::string vsock = vsock_path_in(status); !vsock.empty() && !deadline.has_passed()) {
    // Whether there is one, and what came of it, is seen by what the VM does.
    [[maybe_unused]] const auto asked = ask_agent(vsock);
  }
  return client.wait_for_end(deadline);
}

Result<void> stop(const VmRequest& request) {
  ControlClient client = TANDEM_TRY(connect(request));
  const bool is_gentle = !request.force || request.timeout;
  bool has_ended = false;
  if (is_gentle) {
    const auto stopped = stop_gently(request, client);
    if (!stopped && !request.force) {
      return std::unexpected(stopped.error());
    }
    has_ended = stopped.value_or(false);
  }
  if (!has_ended && request.force) {
    TANDEM_TRY(client.ask("stop", {{"force", true}}));
    has_ended = TANDEM_TRY(client.wait_for_end(Deadline(kProcessPatience)));
  }
  if (!has_ended) {
    return fail(Errc::kIo, "the virtual machine still runs after {} s (--force ends it)",
                request.timeout.value_or(kStopTimeout).count());
  }
  wait_until_gone(request.name);
  return show(request, Json::object(), "");
}

Result<void> dispatch(const VmRequest& request) {
  if (request.command == "list") {
    return list(request);
  }
  if (request.command == "status") {
    return tell_status(request);
  }
  if (request.command == "stop") {
    return stop(request);
  }
  if (request.command == "balloon") {
    return balloon(request);
  }
  if (request.command == "migrate") {
    return migrate(request);
  }
  if (request.command == "save") {
    return save(request);
  }
  if (request.command == "console") {
    return attach_console(request);
  }
  return perform(request);
}

}  // namespace

int run(const VmRequest& request) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto done = dispatch(request);
  if (!done) {
    const std::string name = request.name.empty() ? "" : request.name + ": ";
    print_error_line(request.command + ": " + name + done.error().message());
    return kExitFailure;
  }
  return kExitSuccess;
}

Result<std::string> find_vsock(const std::string& name) {
  ControlClient client = TANDEM_TRY(ControlClient::connect(control::runtime_directory(), name));
  std::string path = vsock_path_in(TANDEM_TRY(client.ask("status", Json::object())));
  if (path.empty()) {
    return fail(Errc::kNotFound, "the virtual machine has no vsock device (tandem run --vsock)");
  }
  return path;
}

}  // namespace tandem::cli
