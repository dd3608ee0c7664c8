// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/vm_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "vmm/cli/error_line.hpp"
#include "vmm/control/vm_registry.hpp"
#include "vmm/lib/size_text/size_text.hpp"
#include "vmm/migration/migration_address.hpp"

namespace tandem::cli {
namespace {

constexpr std::string_view kStopFooter = R"(
The guest sees its power key pressed. If that does not help within a few seconds and the VM has a vsock device, the
guest's agent is asked, too. With --force and --timeout, the VM is ended when the time is over.)";
constexpr std::string_view kMigrateFooter = R"(
ADDR is where `tandem receive` waits: unix:PATH, tcp:HOST:PORT, or fd:N for a connected socket that was inherited. Whatever fails
before the receiver has the machine, it goes on here. Interrupting the command cancels the migration.)";
constexpr std::string_view kConsoleFooter = R"(
On a terminal, Ctrl-A x detaches; Ctrl-A h shows all keys. The virtual machine goes on.)";
constexpr std::string_view kSaveFooter = R"(
The virtual machine stands still while its memory is written, and then goes on, unless --stop ends it; if it cannot be saved
it goes on in any case. Disks are not part of what is saved. `tandem restore DIR` goes on from there.

A difference needs its BASE, which it names by its relative path: keep both, or move both. BASE is the snapshot that the virtual
machine was saved in or restored from last:
  tandem save demo monday
  tandem save demo tuesday --diff monday
  tandem restore tuesday)";
constexpr std::string_view kVmFooter = R"(
VM is the name that was given to `tandem run --name`; `tandem list` shows all.)";

/// A command, and what it takes beside the name of a VM.
struct VmCommand {
  std::string_view name;
  std::string_view help;
  bool has_vm = true;
  bool has_json = true;
  std::string_view footer = {};
};

constexpr std::array kCommands{
    VmCommand{.name = "list", .help = "Lists the virtual machines of this host.", .has_vm = false},
    VmCommand{.name = "status", .help = "Shows what a virtual machine is and does."},
    VmCommand{.name = "pause", .help = "Lets a virtual machine stand still."},
    VmCommand{.name = "resume", .help = "Lets a paused virtual machine go on."},
    VmCommand{.name = "reset", .help = "Resets a virtual machine in place."},
    VmCommand{
        .name = "stop", .help = "Makes a guest power itself off, or ends its virtual machine.", .footer = kStopFooter},
    VmCommand{.name = "balloon", .help = "Shows or sets how much memory a guest gives up."},
    VmCommand{.name = "save", .help = "Saves a virtual machine into a directory.", .footer = kSaveFooter},
    VmCommand{.name = "migrate", .help = "Moves a running virtual machine to another host.", .footer = kMigrateFooter},
    VmCommand{.name = "console",
              .help = "Attaches this terminal to a guest's console.",
              .has_json = false,
              .footer = kConsoleFooter},
};

Result<std::chrono::seconds> parse_timeout(const std::string& text) {
  constexpr uint32_t kMostSeconds = 1'000'000;
  uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds > kMostSeconds) {
    return fail(Errc::kInvalidArgument, "--timeout: {} is no number of seconds from 0 to {}", in_quotes(text),
                kMostSeconds);
  }
  return std::chrono::seconds(seconds);
}

Result<std::chrono::milliseconds> parse_downtime(const std::string& text) {
  constexpr uint32_t kMostMilliseconds = 1'000'000;
  uint32_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error != std::errc() || end != text.data() + text.size() || milliseconds == 0 ||
      milliseconds > kMostMilliseconds) {
    return fail(Errc::kInvalidArgument, "--downtime: {} is no number of milliseconds from 1 to {}", in_quotes(text),
                kMostMilliseconds);
  }
  return std::chrono::milliseconds(milliseconds);
}

/// One of the commands, as CLI11 sees it. Values are taken as texts.
class VmParser {
 public:
  explicit VmParser(const VmCommand& command)
      : command_(command), app_(std::string(command.help), "tandem " + std::string(command.name)) {
    request_.command = command.name;
    app_.set_help_flag("-h,--help", "show this help");
    app_.footer(std::string(command.footer) + (command.has_vm ? std::string(kVmFooter) : ""));
    if (command.has_vm) {
      app_.add_option("VM", request_.name, "name of the virtual machine")->type_name("");
    }
    if (command.has_json) {
      app_.add_flag("--json", request_.json, "print JSON");
    }
    add_own();
  }

  Result<std::variant<std::string, VmRequest>> parse(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      return app_.help();
    } catch (const CLI::ParseError& error) {
      return fail(Errc::kInvalidArgument, "{}", error.what());
    }
    TANDEM_TRY(complete());
    return std::move(request_);
  }

 private:
  void add_own() {
    if (command_.name == "stop") {
      app_.add_flag("--force", request_.force, "end it at once, as if the power were cut");
      app_.add_option("--timeout", timeout_, "how long the guest may take [60]")->type_name("SECONDS");
    } else if (command_.name == "balloon") {
      app_.add_option("SIZE", size_, "what the guest is to give up: bytes, or with suffix K, M or G")->type_name("");
    } else if (command_.name == "save") {
      app_.add_option("DIR", request_.directory, "the directory to be made")->type_name("");
      app_.add_option("--diff", request_.base,
                      "write only what has changed since the VM was saved in BASE, or restored from it")
          ->type_name("BASE");
      app_.add_flag("--replace", request_.replace, "if there is a snapshot at DIR already, take its place");
      app_.add_flag("--stop", request_.stop, "end the VM once it is saved");
      app_.add_flag("--freeze", request_.freeze,
                    "have the guest's agent freeze its file systems, so that what is on the disks is whole by itself");
    } else if (command_.name == "migrate") {
      add_migrate();
    } else if (command_.name == "console") {
      app_.add_flag("--hvc", hvc_, "the virtio console [the first serial port]");
    }
  }

  void add_migrate() {
    app_.add_option("ADDR", address_, "where the receiver waits")->type_name("");
    app_.add_option("--downtime", downtime_, "how long the guest may stand still [300]")->type_name("MS");
    app_.add_option("--timeout", timeout_, "how long it may take before the guest stands still [no limit]")
        ->type_name("SECONDS");
    app_.add_flag("--check", request_.check, "only ask whether the receiver can have the machine, and print why not");
    app_.add_flag("--verify", request_.verify, "compare all memory while the guest stands still");
    app_.add_option("--compress", compress_, "send memory compressed")->type_name("zstd");
    app_.add_flag("--status", status_, "show how far the migration is that is under way");
    app_.add_flag("--cancel", cancel_, "end the migration that is under way; the guest goes on here");
  }

  Result<void> complete_migrate() {
    if (status_ || cancel_) {
      if (!address_.empty() || (status_ && cancel_)) {
        return fail(Errc::kInvalidArgument, "--status and --cancel take nothing but the VM");
      }
      request_.of_migration = status_ ? VmRequest::OfMigration::kStatus : VmRequest::OfMigration::kCancel;
      return {};
    }
    if (address_.empty()) {
      return fail(Errc::kInvalidArgument, "the address of a receiver is needed: unix:PATH, tcp:HOST:PORT or fd:N");
    }
    TANDEM_TRY(migration::MigrationAddress::parse(address_));
    request_.address = address_;
    if (!downtime_.empty()) {
      request_.downtime = TANDEM_TRY(parse_downtime(downtime_));
    }
    if (!compress_.empty() && compress_ != "zstd") {
      return fail(Errc::kInvalidArgument, "--compress: {} is not zstd", in_quotes(compress_));
    }
    request_.compress = !compress_.empty();
    return {};
  }

  Result<void> complete() {
    if (command_.has_vm) {
      if (request_.name.empty()) {
        return fail(Errc::kInvalidArgument, "the name of a VM is needed (see tandem list)");
      }
      if (const auto checked = control::check_vm_name(request_.name); !checked) {
        return fail(checked.error().code(), "{} {}", in_quotes(request_.name), checked.error().message());
      }
    }
    if (command_.name == "save") {
      if (request_.directory.empty()) {
        return fail(Errc::kInvalidArgument, "the directory to be made is needed");
      }
      if (app_.count("--diff") != 0 && request_.base.empty()) {
        return fail(Errc::kInvalidArgument, "--diff: the directory of a snapshot is needed");
      }
    }
    if (command_.name == "migrate") {
      TANDEM_TRY(complete_migrate());
    }
    if (!timeout_.empty()) {
      request_.timeout = TANDEM_TRY(parse_timeout(timeout_));
    }
    if (!size_.empty()) {
      const auto bytes = parse_size(size_);
      if (!bytes) {
        return fail(bytes.error().code(), "{} is {}", in_quotes(size_), bytes.error().message());
      }
      request_.target_bytes = *bytes;
    }
    if (hvc_) {
      request_.device = "hvc0";
    }
    return {};
  }

  const VmCommand& command_;
  CLI::App app_;
  VmRequest request_;
  std::string timeout_;
  std::string size_;
  std::string address_;
  std::string downtime_;
  std::string compress_;
  bool status_ = false;
  bool cancel_ = false;
  bool hvc_ = false;
};

}  // namespace

Result<std::variant<std::string, VmRequest>> parse_vm_command(const std::string& command,
                                                              std::vector<std::string> words) {
  const auto* const known = std::ranges::find(kCommands, command, &VmCommand::name);
  TANDEM_ASSERT(known != kCommands.end(), "the command line knows the same commands");
  return VmParser(*known).parse(std::move(words));
}

}  // namespace tandem::cli
