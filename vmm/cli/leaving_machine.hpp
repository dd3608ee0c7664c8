// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vmm/machine/machine.hpp"
#include "vmm/migration/migration_source.hpp"

namespace tandem::cli {

/// A running machine as the source of a migration. @thread that of the migration's job.
class LeavingMachine final : public migration::MigrationSource {
 public:
  /// @pre `machine` outlives it, and `Machine::run` has been called.
  explicit LeavingMachine(Machine& machine) : machine_(machine) {}

  Result<std::string> spec_document() override;
  std::vector<migration::LeavingImage> images() override;
  [[nodiscard]] std::span<const std::byte> ram() override { return machine_.ram(); }
  [[nodiscard]] DirtyBitmap new_bitmap() override { return machine_.write_log().make_bitmap(); }
  Result<void> start_write_log() override;
  Result<void> collect(DirtyBitmap& into) override;
  void stop_write_log() override { writes_.reset(); }
  void throttle(unsigned percent) override;
  Result<MachineState> pause_and_save() override;
  [[nodiscard]] bool is_paused_by_user() override { return paused_by_user_; }
  Result<void> resume_after_failure() override;
  [[nodiscard]] bool has_writable_disk() override { return machine_.devices().has_writable_disk(); }
  Result<void> release_disks() override;
  Result<void> reclaim_disks() override;
  void leave_to_user() override;

 private:
  Machine& machine_;
  std::unique_ptr<RamWriteLog::Reader> writes_;
  std::unique_ptr<VcpuThrottle> throttle_;
  bool held_ = false;
  bool paused_by_user_ = false;
};

}  // namespace tandem::cli
