// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/error_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace tandem::cli {

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

std::string error_line(std::string_view message) {
  std::string line = "tandem: ";
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  line += '\n';
  return line;
}

void print_error_line(std::string_view message) {
  const std::string line = error_line(message);
  // Nowhere is left to report a failure to.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tandem::cli
