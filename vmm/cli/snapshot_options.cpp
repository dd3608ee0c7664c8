// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/snapshot_options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "vmm/cli/error_line.hpp"

namespace tandem::cli {
namespace {

constexpr const char* kVerifyHelp =
    "Checks every byte of snapshots and of the snapshots that they are differences to. A base that is not where its "
    "difference says is looked for among the other DIRs.";
constexpr const char* kInfoHelp =
    "Shows what a snapshot holds: the machine, its boot images and components, and the snapshots it is a difference "
    "to.";

}  // namespace

Result<std::variant<std::string, SnapshotRequest>> parse_snapshot_command(const std::string& name,
                                                                          std::vector<std::string> words) {
  const bool is_verify = name == "verify";
  SnapshotRequest request{.what = is_verify ? SnapshotRequest::What::kVerify : SnapshotRequest::What::kInfo};
  CLI::App app(is_verify ? kVerifyHelp : kInfoHelp, "tandem " + name);
  app.set_help_flag("-h,--help", "show this help");
  app.allow_extras();
  app.add_flag("--json", request.json, "print JSON, on one line")->disable_flag_override();
  app.add_option("DIR", request.directories, "directory of a snapshot")->expected(0, -1);
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ParseError& error) {
    return fail(Errc::kInvalidArgument, "{}", error.what());
  }
  if (const auto rest = app.remaining(); !rest.empty()) {
    return fail(Errc::kInvalidArgument, "unknown option {} (see tandem {} --help)", in_quotes(rest.front()), name);
  }
  if (request.directories.empty()) {
    return fail(Errc::kInvalidArgument, "the directory of a snapshot is needed (see tandem {} --help)", name);
  }
  if (!is_verify && request.directories.size() > 1) {
    return fail(Errc::kInvalidArgument, "nothing is expected at {} (see tandem info --help)",
                in_quotes(request.directories[1]));
  }
  return request;
}

}  // namespace tandem::cli
