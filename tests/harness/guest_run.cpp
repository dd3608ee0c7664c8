// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/guest_run.hpp"

#include <charconv>
#include <filesystem>
#include <sstream>

namespace tandem::tests {
namespace {

/// The lines of `console` without carriage returns.
std::vector<std::string> lines_of(const std::string& console) {
  std::vector<std::string> lines;
  std::istringstream stream(console);
  for (std::string line; std::getline(stream, line);) {
    std::erase(line, '\r');
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string payload_image(const std::string& payload) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / "guest/payloads" / (payload + ".img");
}

std::vector<std::string> run_command(const PayloadBoot& boot) {
  std::vector<std::string> command{"tandem", "run", "--kernel", payload_image(boot.payload)};
  command.insert(command.end(), {"--cpus", std::to_string(boot.vcpu_count)});
  command.insert(command.end(), {"--memory", std::to_string(boot.memory_mib) + "M"});
  if (!boot.cmdline.empty()) {
    command.insert(command.end(), {"--cmdline", boot.cmdline});
  }
  command.insert(command.end(), boot.options.begin(), boot.options.end());
  return command;
}

GuestReport parse_report(const std::string& console) {
  GuestReport report;
  for (const std::string& line : lines_of(console)) {
    if (line.starts_with("PASS: ")) {
      ++report.passed;
    } else if (line.starts_with("FAIL: ")) {
      report.failures.push_back(line);
    } else if (line.starts_with("SKIP: ")) {
      report.skips.push_back(line);
    } else if (line.starts_with("EXIT ")) {
      int status = 0;
      const auto [end, error] = std::from_chars(line.data() + 5, line.data() + line.size(), status);
      if (error == std::errc() && end == line.data() + line.size()) {
        report.exit = status;
      }
    }
  }
  return report;
}

std::vector<std::string> values_of(const std::string& word, const std::string& console) {
  std::vector<std::string> values;
  for (const std::string& line : lines_of(console)) {
    if (line.starts_with(word + " ")) {
      values.push_back(line.substr(word.size() + 1));
    }
  }
  return values;
}

}  // namespace tandem::tests
