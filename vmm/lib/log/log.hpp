// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "vmm/lib/result/result.hpp"

/// The log: lines on stderr, "tandem: <text>". The only user of spdlog.
namespace tandem::log {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError, kOff };

/// Shows messages of `level` and above. Until called: `kInfo`.
/// @thread  any.
void set_level(Level level);

/// The level named `debug`, `info`, `warn`, `error` or `off`.
/// @errors  Errc::kInvalidArgument: no such level.
Result<Level> parse_level(std::string_view name);

/// Writes one line. Never called from a signal handler.
/// @thread  any.
void write(Level level, std::string_view text);

[[nodiscard]] bool enabled(Level level);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) {
    write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) {
    write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn)) {
    write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError)) {
    write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
  }
}

/// Counts events that a guest can cause at will, and says which of them deserve a line: the 1st, 2nd, 4th, 8th, …
/// @thread  any.
class RateLimit {
 public:
  /// Counts one event.
  /// @return  the count so far if this event is to be logged, else 0.
  uint64_t count();
  [[nodiscard]] uint64_t total() const { return total_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> total_{0};
};

}  // namespace tandem::log
