// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/control/job_runner.hpp"
#include "vmm/migration/migration_report.hpp"

namespace tandem::cli {

/// How far a migration is, as its job tells: the round of RAM as a phase of its own, and in the details what is known of rates.
control::JobProgress job_progress_of(const migration::MigrationProgress& progress);

}  // namespace tandem::cli
