// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "vmm/lib/size_text/size_text.hpp"

namespace tandem::cli {
namespace {

constexpr size_t kBarCells = 24;
constexpr size_t kDefaultColumns = 80;
constexpr std::chrono::milliseconds kShowEvery{100};
/// Before that, a rate is nothing but noise.
constexpr std::chrono::seconds kRateAfter{1};
constexpr std::string_view kClearLine = "\r\x1b[K";

std::string time_text(uint64_t seconds) {
  constexpr uint64_t kMinute = 60;
  return seconds < kMinute ? fmt::format("{} s", seconds)
                           : fmt::format("{}:{:02} min", seconds / kMinute, seconds % kMinute);
}

void write_to_terminal(std::string_view text) {
  // Progress is a courtesy: what the terminal does not take is not shown.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

size_t terminal_columns() {
  struct winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultColumns;
}

}  // namespace

std::string progress_line(const ProgressReport& progress, std::chrono::nanoseconds elapsed, size_t columns) {
  if (progress.total_bytes == 0) {
    return std::string(progress.phase.substr(0, columns));
  }
  const uint64_t total = progress.total_bytes;
  const uint64_t done = std::min(progress.done_bytes, total);
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(part * kBarCells);
  std::string line = fmt::format("{} [{}{}] {:3}%", progress.phase, std::string(filled, '#'),
                                 std::string(kBarCells - filled, '.'), static_cast<unsigned>(part * 100));
  if (elapsed >= kRateAfter && done > 0) {
    const double rate = static_cast<double>(done) / std::chrono::duration<double>(elapsed).count();
    line += fmt::format("  {}/s", format_size(static_cast<uint64_t>(rate)));
    if (rate >= 1) {
      line += fmt::format("  {} left", time_text(static_cast<uint64_t>(static_cast<double>(total - done) / rate)));
    }
  }
  return line.substr(0, columns);
}

ProgressBar::ProgressBar() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

Result<void> ProgressBar::report(const ProgressReport& progress) {
  if (!is_terminal_) {
    return {};
  }
  const Time now = std::chrono::steady_clock::now();
  if (progress.phase != phase_ || progress.done_bytes == 0) {
    phase_ = progress.phase;
    phase_start_ = now;
  } else if (now - last_shown_ < kShowEvery) {
    return {};
  }
  last_shown_ = now;
  is_shown_ = true;
  // One column less: some terminals begin a new line behind the last one.
  write_to_terminal(
      fmt::format("{}{}", kClearLine, progress_line(progress, now - phase_start_, terminal_columns() - 1)));
  return {};
}

void ProgressBar::clear() {
  if (std::exchange(is_shown_, false)) {
    write_to_terminal(kClearLine);
  }
}

}  // namespace tandem::cli
