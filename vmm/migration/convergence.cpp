// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/convergence.hpp"

#include <algorithm>
#include <array>

namespace tandem::migration {
namespace {

constexpr std::array<unsigned, 7> kThrottleSteps{20, 40, 60, 80, 90, 95, 99};

/// Rounds without progress before the next step: one may be bad luck.
constexpr unsigned kPatience = 2;
/// Rounds at the last step before it is hopeless.
constexpr unsigned kLastRounds = 30;

/// A round that copied less says little about the rate: it was mostly waiting for the answer.
constexpr uint64_t kLeastMeasuredBytes = 4U << 20;

uint64_t per_second(uint64_t bytes, Convergence::Duration duration) {
  const double seconds = std::chrono::duration<double>(std::max(duration, Convergence::Duration(1))).count();
  return static_cast<uint64_t>(static_cast<double>(bytes) / seconds);
}

}  // namespace

void Convergence::measure(const Round& round) {
  if (bandwidth_ == 0 || round.copied_bytes >= kLeastMeasuredBytes) {
    bandwidth_ = std::max<uint64_t>(1, per_second(round.copied_bytes, round.duration));
  }
  dirty_rate_ = per_second(round.left_bytes, round.duration);
  const double seconds = static_cast<double>(round.left_bytes) / static_cast<double>(bandwidth_);
  expected_ = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, 1e9)));
}

Convergence::Next Convergence::after(const Round& round) {
  measure(round);
  if (expected_ <= allowed_ / 4 * 3) {
    return Next::kStop;
  }
  if (throttle_percent_ == kThrottleSteps.back() && ++rounds_at_most_ > kLastRounds) {
    return Next::kGiveUp;
  }
  note_progress(round);
  if (rounds_without_progress_ >= kPatience) {
    throttle_more();
  }
  return Next::kAgain;
}

void Convergence::note_progress(const Round& round) {
  const uint64_t mark = mark_bytes_.value_or(round.copied_bytes);
  const bool progress = round.left_bytes / 3 < mark / 4;
  mark_bytes_ = progress ? round.left_bytes : mark;
  rounds_without_progress_ = progress ? 0 : rounds_without_progress_ + 1;
}

void Convergence::throttle_more() {
  rounds_without_progress_ = 0;
  const auto step = std::ranges::upper_bound(kThrottleSteps, throttle_percent_);
  if (step != kThrottleSteps.end()) {
    throttle_percent_ = *step;
  }
}

}  // namespace tandem::migration
