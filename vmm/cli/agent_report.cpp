// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/agent_report.hpp"

#include <fmt/format.h>

namespace tandem::cli {
namespace {

using nlohmann::ordered_json;

std::string plain(const ordered_json& value) {
  return escape_controls(value.is_string() ? value.get_ref<const std::string&>() : as_json(value));
}

/// An item of a list, on one line.
std::string line_of(const ordered_json& item) {
  if (!item.is_object()) {
    return plain(item);
  }
  std::string line;
  for (const auto& [name, value] : item.items()) {
    line += fmt::format("{}{}={}", line.empty() ? "" : "  ", name, plain(value));
  }
  return line;
}

}  // namespace

std::string as_json(const ordered_json& report) {
  return report.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string as_text(const ordered_json& report) {
  std::string text;
  for (const auto& [name, value] : report.items()) {
    if (!value.is_array()) {
      text += fmt::format("{}: {}\n", name, plain(value));
      continue;
    }
    text += fmt::format("{}:{}\n", name, value.empty() ? " none" : "");
    for (const auto& item : value) {
      text += fmt::format("  {}\n", line_of(item));
    }
  }
  return text;
}

}  // namespace tandem::cli
