// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/log/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <memory>

namespace tandem::log {
namespace {

constexpr std::array kLevels{
    std::pair{std::string_view{"debug"}, spdlog::level::debug},
    std::pair{std::string_view{"info"}, spdlog::level::info},
    std::pair{std::string_view{"warn"}, spdlog::level::warn},
    std::pair{std::string_view{"error"}, spdlog::level::err},
    std::pair{std::string_view{"off"}, spdlog::level::off},
};

spdlog::level::level_enum spdlog_level(Level level) { return kLevels[static_cast<size_t>(level)].second; }

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("tandem", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    // A terminal may be in raw mode, where a line feed does not return the carriage.
    made->set_formatter(std::make_unique<spdlog::pattern_formatter>("%n: %v", spdlog::pattern_time_type::local,
                                                                    ::isatty(STDERR_FILENO) != 0 ? "\r\n" : "\n"));
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) { logger().set_level(spdlog_level(level)); }

Result<Level> parse_level(std::string_view name) {
  for (size_t index = 0; index < kLevels.size(); ++index) {
    if (kLevels[index].first == name) {
      return static_cast<Level>(index);
    }
  }
  return fail(Errc::kInvalidArgument, "'{}' is no log level (debug, info, warn, error, off)", name);
}

void write(Level level, std::string_view text) { logger().log(spdlog_level(level), text); }

bool enabled(Level level) { return logger().should_log(spdlog_level(level)); }

uint64_t RateLimit::count() {
  const uint64_t now = total_.fetch_add(1, std::memory_order_relaxed) + 1;
  return std::has_single_bit(now) ? now : 0;
}

}  // namespace tandem::log
