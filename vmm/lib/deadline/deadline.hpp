// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

namespace tandem {

/// When to give up waiting.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  /// Never.
  Deadline() = default;
  explicit Deadline(Clock::duration from_now) : at_(Clock::now() + from_now) {}

  [[nodiscard]] bool has_passed() const { return at_ && Clock::now() >= *at_; }
  /// What poll(2) takes: milliseconds until then, rounded up; -1 for never.
  [[nodiscard]] int poll_timeout_ms() const;

 private:
  std::optional<Clock::time_point> at_;
};

}  // namespace tandem
