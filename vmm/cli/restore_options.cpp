// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/restore_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "vmm/cli/device_text.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/control/vm_registry.hpp"

namespace tandem::cli {
namespace {

constexpr const char* kFooter = R"(
DIR is a snapshot that `tandem save` has made. More of them say where those are that it builds on, if not where they were
when it was made. The guest runs at once, and its memory is read from the snapshot as it is needed: the snapshot has to
stay as long as the virtual machine runs.

A device that is not named gets what it had when the snapshot was made: `tandem info DIR` shows that.

Exit status: 0 the guest powered off, 1 failure, 2 usage error, 3 the guest crashed.)";

/// `tandem restore`, as CLI11 sees it. Values are taken as texts.
class RestoreParser {
 public:
  RestoreParser() : app_("Lets a saved virtual machine go on, in the foreground.", "tandem restore") {
    app_.set_help_flag("-h,--help", "show this help");
    app_.footer(kFooter);
    app_.get_formatter()->column_width(kHelpColumn);
    app_.add_option("DIR", directories_, "the snapshot, and where else its bases may be")->type_name("");
    app_.add_option("--name", name_, "name of the VM on this host [that it had]")->type_name("NAME");
    app_.add_flag("--paused", request_.paused, "wait for `tandem resume` before the first instruction");
    app_.add_flag("--eager", request_.eager, "read and check all memory before the first instruction");
    app_.add_option("--clock", clock_,
                    "what the guest's clock chip shows: the host's time (wall), or the time that was saved, going on "
                    "(freeze) [wall]")
        ->type_name("wall|freeze");
    add_list("--disk", disks_, "ID=PATH", "what the disk ID is kept in; may be repeated");
    add_list("--net", nets_, "ID=tap=IF", "the tap interface of the network device ID; may be repeated");
    app_.add_option("--vsock", vsock_, "the socket that leads to the guest's ports")->type_name("PATH");
    app_.add_option("--console", console_, "first serial port: stdio, pty, file=PATH, socket=PATH or none")
        ->type_name("BACKEND");
    app_.add_option("--hvc", hvc_, "virtio console, on a BACKEND as above")->type_name("BACKEND");
    app_.add_option("--log-level", log_level_, "debug, info, warn, error or off [info]")->type_name("LEVEL");
  }

  Result<std::variant<std::string, RestoreRequest>> parse(std::vector<std::string> words) {
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      return app_.help();
    } catch (const CLI::ParseError& error) {
      return fail(Errc::kInvalidArgument, "{}", error.what());
    }
    TANDEM_TRY(complete());
    TANDEM_TRY(complete_names());
    return std::move(request_);
  }

 private:
  static constexpr size_t kHelpColumn = 34;

  void add_list(const char* name, std::vector<std::string>& texts, const char* form, const char* help) {
    app_.add_option(name, texts, help)
        ->type_name(form)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  Result<void> complete() {
    if (directories_.empty() || std::ranges::find(directories_, std::string()) != directories_.end()) {
      return fail(Errc::kInvalidArgument, "the directory of a snapshot is needed");
    }
    request_.directory = directories_.front();
    request_.base_places.assign(directories_.begin() + 1, directories_.end());
    if (!clock_.empty() && clock_ != "wall" && clock_ != "freeze") {
      return fail(Errc::kInvalidArgument, "--clock: {} is neither wall nor freeze", in_quotes(clock_));
    }
    request_.freeze_clock = clock_ == "freeze";
    if (!log_level_.empty()) {
      const auto level = log::parse_level(log_level_);
      if (!level) {
        return fail(Errc::kInvalidArgument, "--log-level: {} is none of debug, info, warn, error and off",
                    in_quotes(log_level_));
      }
      request_.log_level = *level;
    }
    return {};
  }

  Result<void> complete_names() {
    HostNames& names = request_.names;
    if (!name_.empty()) {
      if (const auto checked = control::check_vm_name(name_); !checked) {
        return fail(checked.error().code(), "--name: {} {}", in_quotes(name_), checked.error().message());
      }
      names.name = name_;
    }
    for (const std::string& disk : disks_) {
      TANDEM_TRY(with_context(take_disk(names, disk), "--disk"));
    }
    for (const std::string& net : nets_) {
      TANDEM_TRY(with_context(take_net(names, net), "--net"));
    }
    if (!vsock_.empty()) {
      names.vsock = vsock_;
    }
    if (!console_.empty()) {
      names.console = TANDEM_TRY(with_context(parse_console(console_), "--console"));
    }
    if (!hvc_.empty()) {
      names.hvc = TANDEM_TRY(with_context(parse_console(hvc_), "--hvc"));
    }
    return {};
  }

  CLI::App app_;
  RestoreRequest request_;
  std::vector<std::string> directories_;
  std::string name_;
  std::string clock_;
  std::vector<std::string> disks_;
  std::vector<std::string> nets_;
  std::string vsock_;
  std::string console_;
  std::string hvc_;
  std::string log_level_;
};

}  // namespace

Result<std::variant<std::string, RestoreRequest>> parse_restore_command(std::vector<std::string> words) {
  return RestoreParser().parse(std::move(words));
}

}  // namespace tandem::cli
