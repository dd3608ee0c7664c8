// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tandem::migration {

/// What a migration is doing.
enum class MigrationPhase : uint8_t { kHello, kImages, kPreparing, kRam, kStopped, kHandOver, kOver };

std::string_view text_of(MigrationPhase phase);

/// How far a migration is.
struct MigrationProgress {
  MigrationPhase phase = MigrationPhase::kHello;
  uint32_t round = 0;
  uint64_t ram_bytes = 0;
  uint64_t copied_bytes = 0;  ///< Of RAM in this round.
  uint64_t round_bytes = 0;   ///< Of RAM to copy in this round.
  uint64_t sent_bytes = 0;    ///< All that went to the other side.
  uint64_t bandwidth = 0;     ///< Bytes of RAM copied each second.
  uint64_t dirty_rate = 0;    ///< Bytes of RAM written by the guest each second.
  unsigned throttle_percent = 0;
  std::chrono::nanoseconds expected_downtime{};
};

/// Hears of progress, on the sender's thread.
class MigrationObserver {
 public:
  virtual ~MigrationObserver() = default;
  virtual void on_progress(const MigrationProgress& progress) = 0;
};

/// How long the guest did not run, by what was done meanwhile.
struct Downtime {
  using Duration = std::chrono::nanoseconds;
  Duration pause{};      ///< Stopping the machine and saving its state.
  Duration remainder{};  ///< Copying the last pages.
  Duration state{};      ///< Sending the state, restoring it there, and comparing RAM if that was wanted.
  Duration hand_over{};  ///< Unlocking the disks here, locking them there.
  [[nodiscard]] Duration total() const { return pause + remainder + state + hand_over; }
};

/// What a migration cost.
struct MigrationReport {
  std::chrono::nanoseconds total{};
  uint64_t sent_bytes = 0;
  uint64_t copied_bytes = 0;  ///< Of RAM, in all rounds.
  uint32_t rounds = 0;
  unsigned throttle_percent = 0;  ///< The most.
  bool ram_compared = false;
  Downtime downtime;

  /// A line for each figure.
  [[nodiscard]] std::string text() const;
};

}  // namespace tandem::migration
