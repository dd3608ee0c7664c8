// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tandem::migration {

/// Decides after each round of copying RAM whether the rest is small enough to stop the guest for, and how much the guest has
/// to be slowed down if the rest does not get smaller.
///
/// A round copies what was written during the one before. Its rate, measured, tells how long the rest would take. Three
/// quarters of the allowed downtime are for that, one quarter is for saving, restoring and the hand-over. Progress is a rest below
/// three quarters of the one of the last progress, whatever was between: without it the vCPUs are throttled a step more.
class Convergence {
 public:
  using Duration = std::chrono::nanoseconds;

  explicit Convergence(Duration allowed_downtime) : allowed_(allowed_downtime) {}

  /// One round that is over.
  struct Round {
    uint64_t copied_bytes;  ///< Of RAM, however few were sent for them.
    Duration duration;      ///< From its first byte to the receiver's word that all is in RAM.
    uint64_t left_bytes;    ///< Written meanwhile.
  };
  enum class Next : uint8_t {
    kStop,    ///< Stop the guest and copy the rest.
    kAgain,   ///< Copy the rest while the guest runs.
    kGiveUp,  ///< It will never be small enough.
  };
  Next after(const Round& round);

  /// How long copying the rest would take.
  [[nodiscard]] Duration expected_downtime() const { return expected_; }
  /// Bytes of RAM copied each second; 0 before the first round.
  [[nodiscard]] uint64_t bandwidth() const { return bandwidth_; }
  /// Bytes of RAM written each second in the last round.
  [[nodiscard]] uint64_t dirty_rate() const { return dirty_rate_; }
  /// Share of the time that the vCPUs may not run in.
  [[nodiscard]] unsigned throttle_percent() const { return throttle_percent_; }

 private:
  void measure(const Round& round);
  void note_progress(const Round& round);
  void throttle_more();

  Duration allowed_;
  Duration expected_{};
  uint64_t bandwidth_ = 0;
  uint64_t dirty_rate_ = 0;
  unsigned throttle_percent_ = 0;
  std::optional<uint64_t> mark_bytes_;  // the rest at the last progress; at first what the first round copied
  unsigned rounds_without_progress_ = 0;
  unsigned rounds_at_most_ = 0;  // with the throttle at its limit
};

}  // namespace tandem::migration
