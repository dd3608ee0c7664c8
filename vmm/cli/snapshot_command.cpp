// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/snapshot_command.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "vmm/cli/agent_report.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/cli/exit_status.hpp"
#include "vmm/cli/progress.hpp"
#include "vmm/cli/snapshot_report.hpp"
#include "vmm/migration/snapshot.hpp"

namespace tandem::cli {
namespace {

using migration::Snapshot;

Result<void> print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return fail_errno("standard output");
  }
  return {};
}

Result<void> verify_one(const std::string& directory, const SnapshotRequest& request) {
  const Snapshot snapshot = TANDEM_TRY(Snapshot::open(directory, request.directories));
  ProgressBar progress;
  return snapshot.verify(progress);
}

/// Checks all, whatever is found: one line for each, on stdout for those that are good.
int verify(const SnapshotRequest& request) {
  int status = kExitSuccess;
  auto report = nlohmann::ordered_json::array();
  for (const std::string& directory : request.directories) {
    auto verified = verify_one(directory, request);
    report.push_back({{"directory", directory}, {"ok", verified.has_value()}});
    if (verified && !request.json) {
      verified = print(fmt::format("{}: ok\n", escape_controls(directory)));
    }
    if (!verified) {
      report.back()["error"] = verified.error().message();
      print_error_line("verify: " + verified.error().message());
      status = kExitFailure;
    }
  }
  if (request.json) {
    if (const auto printed = print(as_json(report) + '\n'); !printed) {
      print_error_line("verify: " + printed.error().message());
      status = kExitFailure;
    }
  }
  return status;
}

Result<void> info(const SnapshotRequest& request) {
  const Snapshot snapshot = TANDEM_TRY(Snapshot::open(request.directories.front()));
  const nlohmann::ordered_json report = snapshot_report(snapshot);
  return print(request.json ? as_json(report) + '\n' : as_sections(report));
}

}  // namespace

int run(const SnapshotRequest& request) {
  if (request.what == SnapshotRequest::What::kVerify) {
    return verify(request);
  }
  if (const auto shown = info(request); !shown) {
    print_error_line("info: " + shown.error().message());
    return kExitFailure;
  }
  return kExitSuccess;
}

}  // namespace tandem::cli
