// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/agent_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "vmm/cli/error_line.hpp"
#include "vmm/control/vm_registry.hpp"
#include "vmm/control/vsock_dialer.hpp"

namespace tandem::cli {
namespace {

constexpr const char* kFooter = R"(
VM is the name of a virtual machine that runs (`tandem list`), or, with a slash in it, the path of the socket that was
given to `tandem run --vsock`.

Exit status: 0 done, 1 failure, 2 usage error. exec: that of the program, 128+N if signal N ended it, 124 after
--timeout, 126 or 127 if it cannot be started or found, 125 for any other failure.

Examples:
  tandem agent ./vm.vsock exec -- sh -c 'uname -a; cat' < input > output
  tandem agent vm1 --wait 30 info --json
  tandem agent ./vm.vsock freeze --timeout 60 & cp --sparse=always root.img backup.img; tandem agent ./vm.vsock thaw)";

constexpr double kMostSeconds = 1e9;

Result<uint64_t> parse_seconds(const std::string& text, const char* option) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds <= kMostSeconds)) {
    return fail(Errc::kInvalidArgument, "{}: {} is no number of seconds from 0 to 1000000000", option, in_quotes(text));
  }
  return static_cast<uint64_t>(std::llround(seconds * 1e9));
}

Result<uint32_t> parse_mode(const std::string& text) {
  uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > 07777) {
    return fail(Errc::kInvalidArgument, "--mode: {} is no octal number from 0 to 7777", in_quotes(text));
  }
  return mode;
}

/// `tandem agent`, as CLI11 sees it. Values are taken as texts.
class AgentParser {
 public:
  AgentParser() : app_("Asks the agent in a guest.", "tandem agent") {
    app_.set_help_flag("-h,--help", "show this help");
    app_.footer(kFooter);
    app_.get_formatter()->column_width(kHelpColumn);
    app_.require_subcommand(0, 1);
    app_.add_option("VM", vm_, "name of the virtual machine, or its vsock socket")->type_name("");
    app_.add_flag("--json", request_.json, "print JSON");
    app_.add_option("--wait", wait_, "try again for so long while no agent answers [0]")->type_name("SECONDS");
    add_questions();
    add_exec();
    add_files();
    add_freeze();
    add_rest();
  }

  Result<std::variant<std::string, AgentRequest>> parse(std::vector<std::string> words) {
    // CLI11 has a meaning of its own for dashes.
    const auto dashes = std::ranges::find(words, "--");
    behind_dashes_.assign(dashes, words.end());
    words.erase(dashes, words.end());
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      const auto used = app_.get_subcommands();
      return used.empty() ? app_.help() : used.front()->help("tandem agent VM");
    } catch (const CLI::ParseError& error) {
      return fail(Errc::kInvalidArgument, "{}", error.what());
    }
    TANDEM_TRY(complete());
    return std::move(request_);
  }

 private:
  static constexpr size_t kHelpColumn = 34;
  using Apply = std::function<Result<void>()>;

  /// A function of the agent; `apply` makes the request of what was given for it.
  CLI::App* add(const char* name, const char* help, Apply apply) {
    CLI::App* const function = app_.add_subcommand(name, help);
    function->set_help_flag("-h,--help", "show this help");
    function->get_formatter()->column_width(kHelpColumn);
    function->fallthrough();
    applies_.emplace_back(function, std::move(apply));
    return function;
  }
  template <typename What>
  void add_plain(const char* name, const char* help, What what) {
    add(name, help, [this, what] {
      request_.what = what;
      return Result<void>();
    });
  }

  void add_questions() {
    add_plain("ping", "time a round trip", agent::PingRequest{});
    add_plain("info", "kernel, uptime, boot id, addresses, file systems", agent::InfoRequest{});
    add_plain("pv-state", "what the guest's kernel knows of its vCPUs", agent::PvStateRequest{});
  }

  void add_exec() {
    CLI::App* const exec = add("exec", "run a program, its streams and status as if it ran here", [this] {
      agent::ExecRequest& program = request_.what.emplace<agent::ExecRequest>();
      program.arguments = app_.get_subcommand("exec")->remaining();
      const bool dashes_are_ours = program.arguments.empty() && !behind_dashes_.empty();
      program.arguments.insert(program.arguments.end(), behind_dashes_.begin() + (dashes_are_ours ? 1 : 0),
                               behind_dashes_.end());
      behind_dashes_.clear();
      if (program.arguments.empty() || program.arguments.front().empty()) {
        return Result<void>(fail(Errc::kInvalidArgument, "exec: a program is needed"));
      }
      program.environment = variables_;
      if (!directory_.empty()) {
        program.directory = directory_;
      }
      return apply_timeout([&](uint64_t timeout_ns) { program.timeout_ns = timeout_ns; });
    });
    exec->fallthrough(false);
    exec->prefix_command();
    exec->add_option("--env", variables_, "a variable of its environment")
        ->type_name("NAME=VALUE")
        ->expected(1)
        ->take_all();
    exec->add_option("--directory", directory_, "where it starts [that of the agent]")->type_name("PATH");
    add_timeout(exec, "kill it after that");
    exec->footer("\nWhat follows is the program and its arguments, behind -- if they begin with a dash.");
  }

  void add_files() {
    CLI::App* const put = add("put", "copy a file into the guest", [this] {
      request_.what = PutFile{.local = from_, .request = {.path = to_}};
      if (mode_.empty()) {
        return Result<void>();
      }
      return with_mode();
    });
    put->add_option("LOCAL", from_, "file here; -: standard input")->type_name("")->required();
    put->add_option("PATH", to_, "file in the guest")->type_name("")->required();
    put->add_option("--mode", mode_, "its permissions, octal [644]")->type_name("MODE");
    CLI::App* const get = add("get", "copy a file out of the guest", [this] {
      request_.what = GetFile{.request = {.path = from_}, .local = to_.empty() ? "-" : to_};
      return Result<void>();
    });
    get->add_option("PATH", from_, "file in the guest")->type_name("")->required();
    get->add_option("LOCAL", to_, "file here [standard output]")->type_name("");
  }

  Result<void> with_mode() {
    std::get<PutFile>(request_.what).request.mode = TANDEM_TRY(parse_mode(mode_));
    return {};
  }

  void add_freeze() {
    CLI::App* const freeze = add("freeze", "freeze file systems until thaw, a signal, or the time-out", [this] {
      constexpr uint64_t kDefaultNs = 10'000'000'000;
      agent::FreezeRequest& request = request_.what.emplace<agent::FreezeRequest>();
      request.timeout_ns = kDefaultNs;
      return apply_timeout([&](uint64_t timeout_ns) { request.timeout_ns = timeout_ns; });
    });
    add_timeout(freeze, "thaw by itself after that [10]");
    add_plain("thaw", "thaw what freeze froze", agent::ThawRequest{});
  }

  void add_rest() {
    add_power("shutdown", "power the guest off", false);
    add_power("reboot", "reboot the guest", true);
    CLI::App* const set_time = add("set-time", "set the guest's clock", [this] {
      SetClock& clock = request_.what.emplace<SetClock>();
      if (time_.empty()) {
        return Result<void>();
      }
      return apply_seconds(time_, "set-time", [&](uint64_t realtime_ns) { clock.realtime_ns = realtime_ns; });
    });
    set_time->add_option("SECONDS", time_, "since 1970-01-01T00:00Z [what the clock here shows]")->type_name("");
    add_plain("reseed", "give the guest's random pool fresh bytes", Reseed{});
    add_plain("announce", "make the guest tell neighbours its addresses", agent::AnnounceRequest{});
    add_plain("events", "print what happens in the guest until a signal", agent::EventsRequest{});
  }

  void add_power(const char* name, const char* help, bool reboots) {
    CLI::App* const power = add(name, help, [this, reboots] {
      request_.what = agent::PowerRequest{.reboots = reboots, .forced = forced_};
      return Result<void>();
    });
    power->add_flag("--force", forced_, "without the guest's init: services are not stopped");
  }

  void add_timeout(CLI::App* function, const char* help) {
    function->add_option("--timeout", timeout_, help)->type_name("SECONDS");
  }

  template <typename Take>
  static Result<void> apply_seconds(const std::string& text, const char* option, Take take) {
    take(TANDEM_TRY(parse_seconds(text, option)));
    return {};
  }
  template <typename Take>
  Result<void> apply_timeout(Take take) {
    return timeout_.empty() ? Result<void>() : apply_seconds(timeout_, "--timeout", take);
  }

  Result<void> complete_vm() {
    if (vm_.find('/') == std::string::npos) {
      if (const auto checked = control::check_vm_name(vm_); !checked) {
        return fail(checked.error().code(), "{} {}", in_quotes(vm_), checked.error().message());
      }
      request_.vm_name = vm_;
      return {};
    }
    if (vm_.size() > control::kMaxSocketPathBytes) {
      return fail(Errc::kInvalidArgument, "the path of a socket has at most {} bytes", control::kMaxSocketPathBytes);
    }
    request_.vsock_path = vm_;
    return {};
  }

  Result<void> complete() {
    if (vm_.empty()) {
      return fail(Errc::kInvalidArgument, "a VM is needed (see tandem agent --help)");
    }
    TANDEM_TRY(complete_vm());
    if (!wait_.empty()) {
      TANDEM_TRY(apply_seconds(wait_, "--wait", [&](uint64_t wait_ns) {
        request_.patience = std::chrono::ceil<std::chrono::seconds>(std::chrono::nanoseconds(wait_ns));
      }));
    }
    for (const auto& [function, apply] : applies_) {
      if (function->parsed()) {
        request_.function = function->get_name();
        TANDEM_TRY(apply());
        return behind_dashes_.empty()
                   ? Result<void>()
                   : fail(Errc::kInvalidArgument, "{}: nothing is expected at '--'", request_.function);
      }
    }
    return fail(Errc::kInvalidArgument, "a function is needed (see tandem agent --help)");
  }

  CLI::App app_;
  std::vector<std::pair<CLI::App*, Apply>> applies_;
  AgentRequest request_;
  std::vector<std::string> behind_dashes_;  ///< Those and all that follows them.
  std::string vm_;
  std::string wait_;
  std::string timeout_;
  std::string directory_;
  std::vector<std::string> variables_;
  std::string from_;
  std::string to_;
  std::string mode_;
  std::string time_;
  bool forced_ = false;
};

}  // namespace

Result<std::variant<std::string, AgentRequest>> parse_agent_command(std::vector<std::string> words) {
  return AgentParser().parse(std::move(words));
}

}  // namespace tandem::cli
