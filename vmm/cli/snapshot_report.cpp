// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/snapshot_report.hpp"

#include <sstream>

#include "vmm/cli/agent_report.hpp"
#include "vmm/migration/snapshot_format.hpp"

namespace tandem::cli {
namespace {

using nlohmann::ordered_json;

/// Deeper than any description is: what is below is left out, as printing takes stack for each level.
constexpr int kDeepest = 16;

ordered_json description_of(const migration::Snapshot& snapshot) {
  const auto leave_out = [](int depth, ordered_json::parse_event_t, ordered_json&) { return depth <= kDeepest; };
  ordered_json description = ordered_json::parse(snapshot.spec_document(), leave_out, false);
  return description.is_object() ? description : ordered_json::object();
}

ordered_json chain_of(const migration::Snapshot& snapshot) {
  ordered_json chain = ordered_json::array();
  for (size_t index = 0; index < snapshot.chain().size(); ++index) {
    const auto& level = snapshot.chain()[index];
    const auto& held = snapshot.ram_files()[index].sums().held;
    chain.push_back({{"path", level.path()},
                     {"identity", level.identity().text()},
                     {"kind", held ? "difference" : "full"},
                     {"ram", held ? held->count() * held->page_bytes() : snapshot.ram_bytes()}});
  }
  return chain;
}

}  // namespace

ordered_json snapshot_report(const migration::Snapshot& snapshot) {
  ordered_json report{
      {"format", migration::kSnapshotVersion}, {"identity", snapshot.identity().text()}, {"ram", snapshot.ram_bytes()}};
  ordered_json description = description_of(snapshot);
  ordered_json defaults = ordered_json::object();
  if (const auto found = description.find("defaults"); found != description.end()) {
    defaults = *found;
    description.erase(found);
  }
  report["machine"] = std::move(description);
  report["defaults"] = std::move(defaults);
  report["images"] = ordered_json::array();
  for (const auto& image : snapshot.chain().front().manifest().images) {
    report["images"].push_back(
        {{"role", image.role}, {"size", image.file.size_bytes}, {"checksum", image.file.checksum.text()}});
  }
  report["components"] = ordered_json::array();
  for (const auto& [component, record] : snapshot.state()) {
    report["components"].push_back(
        {{"name", component}, {"kind", record.kind}, {"version", record.version}, {"size", record.payload.size()}});
  }
  report["chain"] = chain_of(snapshot);
  return report;
}

std::string as_sections(const ordered_json& report) {
  std::string text;
  for (const auto& [name, value] : report.items()) {
    if (!value.is_object()) {
      text += as_text({{name, value}});
      continue;
    }
    text += fmt::format("{}:{}\n", escape_controls(name), value.empty() ? " none" : "");
    std::istringstream lines(as_text(value));
    for (std::string line; std::getline(lines, line);) {
      text += fmt::format("  {}\n", line);
    }
  }
  return text;
}

}  // namespace tandem::cli
