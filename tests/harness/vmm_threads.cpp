// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/vmm_threads.hpp"

#include <sched.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace tandem::tests {
namespace {

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// The value of the line `name:` in a file such as /proc/PID/status.
std::optional<uint64_t> status_value(const std::filesystem::path& file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(":")) {
      const size_t value = line.find_first_not_of(" \t", name.size() + 1);
      return value == std::string::npos ? std::nullopt : number_in<uint64_t>(std::string_view(line).substr(value));
    }
  }
  return std::nullopt;
}

std::vector<pid_t> numbered_entries(const std::filesystem::path& directory) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (const auto number = number_in<pid_t>(at->path().filename().string())) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

std::filesystem::path directory_of(pid_t process) { return std::filesystem::path("/proc") / std::to_string(process); }

}  // namespace

std::vector<pid_t> vcpu_threads(pid_t process) {
  constexpr std::string_view kPrefix = "vcpu";
  const std::filesystem::path tasks = directory_of(process) / "task";
  std::map<unsigned, pid_t> by_index;
  for (const pid_t thread : numbered_entries(tasks)) {
    const std::string name = first_line(tasks / std::to_string(thread) / "comm");
    if (!name.starts_with(kPrefix)) {
      continue;
    }
    if (const auto index = number_in<unsigned>(std::string_view(name).substr(kPrefix.size()))) {
      by_index[*index] = thread;
    }
  }
  std::vector<pid_t> threads;
  for (const auto& [index, thread] : by_index) {
    threads.push_back(thread);
  }
  return threads;
}

bool pin(pid_t thread, unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(thread, sizeof set, &set) == 0;
}

std::optional<uint64_t> involuntary_switches(pid_t process, pid_t thread) {
  return status_value(directory_of(process) / "task" / std::to_string(thread) / "status", "nonvoluntary_ctxt_switches");
}

std::optional<pid_t> only_child(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t process : numbered_entries("/proc")) {
    if (status_value(directory_of(process) / "status", "PPid") == static_cast<uint64_t>(parent)) {
      children.push_back(process);
    }
  }
  return children.size() == 1 ? std::optional(children.front()) : std::nullopt;
}

}  // namespace tandem::tests
