// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/migration_progress.hpp"

#include <chrono>

#include "vmm/lib/size_text/size_text.hpp"

namespace tandem::cli {

control::JobProgress job_progress_of(const migration::MigrationProgress& progress) {
  using std::chrono::ceil, std::chrono::milliseconds;
  control::JobProgress job{.phase = std::string(text_of(progress.phase))};
  if (progress.phase != migration::MigrationPhase::kRam) {
    return job;
  }
  job.phase += fmt::format(", round {}", progress.round);
  job.done = progress.copied_bytes;
  job.total = progress.round_bytes;
  if (progress.bandwidth != 0) {
    job.details = fmt::format("{}/s, guest writes {}/s, rest takes {} ms, throttle {} %",
                              format_size(progress.bandwidth), format_size(progress.dirty_rate),
                              ceil<milliseconds>(progress.expected_downtime).count(), progress.throttle_percent);
  }
  return job;
}

}  // namespace tandem::cli
