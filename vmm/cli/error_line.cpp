// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/error_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace tandem::cli {
namespace {

/// How many bytes the control character has that `text` starts with; 0: it is none. Those from U+0080 to U+009F take two
/// in UTF-8, and terminals obey them as well.
size_t control_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7f) {
    return 1;
  }
  return first == 0xc2 && text.size() > 1 && (static_cast<unsigned char>(text[1]) & 0xe0U) == 0x80 ? 2 : 0;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr size_t kMostBytes = 60;
  if (text.size() <= kMostBytes) {
    return fmt::format("'{}'", text);
  }
  size_t cut = kMostBytes;
  // Not inside a UTF-8 character: its later bytes are 10xxxxxx.
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0U) == 0x80) {
    --cut;
  }
  return fmt::format("'{}…'", text.substr(0, cut));
}

std::string escape_controls(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t escaped = control_bytes(text);
    if (escaped == 0) {
      plain += text.front();
    }
    for (const char c : text.substr(0, escaped)) {
      plain += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(std::max<size_t>(escaped, 1));
  }
  return plain;
}

std::string error_line(std::string_view message) { return "tandem: " + escape_controls(message) + '\n'; }

void print_error_line(std::string_view message) {
  const std::string line = error_line(message);
  // Nowhere is left to report a failure to.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tandem::cli
