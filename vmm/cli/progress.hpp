// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "vmm/lib/progress/progress.hpp"

namespace tandem::cli {

/// One line about `progress`: a bar, the part that is done, and rate and remaining time once they can be told. Only the phase, if
/// it is not known how much there is to do.
/// @param elapsed  since the phase began.
std::string progress_line(const ProgressReport& progress, std::chrono::nanoseconds elapsed, size_t columns);

/// Shows progress on a terminal, on one line of stderr that vanishes at the end; on anything else, nothing.
class ProgressBar final : public ProgressSink {
 public:
  ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() override { clear(); }

  Result<void> report(const ProgressReport& progress) override;
  /// Takes the line away. More reports may follow.
  void clear();

 private:
  using Time = std::chrono::steady_clock::time_point;
  const bool is_terminal_;
  bool is_shown_ = false;
  std::string phase_;
  Time phase_start_;
  Time last_shown_;
};

}  // namespace tandem::cli
