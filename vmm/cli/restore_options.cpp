// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/restore_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "vmm/cli/error_line.hpp"
#include "vmm/cli/host_name_options.hpp"

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
    app_.add_flag("--paused", request_.paused, "wait for `tandem resume` before the first instruction");
    app_.add_flag("--eager", request_.eager, "read and check all memory before the first instruction");
    app_.add_option("--clock", clock_,
                    "what the guest's clock chip shows: the host's time (wall), or the time that was saved, going on "
                    "(freeze) [wall]")
        ->type_name("wall|freeze");
    names_.add_to(app_);
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
    return std::move(request_);
  }

 private:
  static constexpr size_t kHelpColumn = 34;

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
    request_.names = TANDEM_TRY(names_.names());
    request_.log_level = TANDEM_TRY(names_.log_level());
    return {};
  }

  CLI::App app_;
  HostNameOptions names_;
  RestoreRequest request_;
  std::vector<std::string> directories_;
  std::string clock_;
};

}  // namespace

Result<std::variant<std::string, RestoreRequest>> parse_restore_command(std::vector<std::string> words) {
  return RestoreParser().parse(std::move(words));
}

}  // namespace tandem::cli
