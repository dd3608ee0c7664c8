// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vmm/lib/guest_memory/dirty_bitmap.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"
#include "vmm/lib/state/machine_state.hpp"

namespace tandem::migration {

/// A boot image of the machine that leaves; owned by the machine.
struct LeavingImage {
  std::string role;  ///< "kernel" or "initrd".
  const SealedImage* image;
};

/// The machine that is to leave this host, as the sender needs it. Called from the sender's thread only.
class MigrationSource {
 public:
  virtual ~MigrationSource() = default;

  /// Description of the machine; at most kMaxSpecBytes.
  virtual Result<std::string> spec_document() = 0;
  virtual std::vector<LeavingImage> images() = 0;

  /// All of guest RAM. The guest writes to it until `pause_and_save`.
  [[nodiscard]] virtual std::span<const std::byte> ram() = 0;
  /// An empty bitmap for that RAM.
  [[nodiscard]] virtual DirtyBitmap new_bitmap() = 0;

  /// Every write to RAM from now on is told by `collect`.
  virtual Result<void> start_write_log() = 0;
  /// Marks the pages that were written since the last call, or since the start.
  /// @errors  of the host; also when the guest has ended: there is nothing to move any more.
  virtual Result<void> collect(DirtyBitmap& into) = 0;
  virtual void stop_write_log() = 0;

  /// Keeps the vCPUs from running for `percent` of the time; 0 ends that.
  /// @pre percent < 100.
  virtual void throttle(unsigned percent) = 0;

  /// Stops the machine and saves its state. RAM may be written meanwhile, but not afterwards.
  /// @errors  the machine may be stopped or not: `resume_after_failure` follows.
  virtual Result<MachineState> pause_and_save() = 0;
  /// Whether the user had paused the machine before. @pre pause_and_save has succeeded.
  [[nodiscard]] virtual bool is_paused_by_user() = 0;
  /// Lets the machine go on as it was before `pause_and_save`: paused if the user had paused it.
  virtual Result<void> resume_after_failure() = 0;

  /// Whether the machine has a disk that it may write to.
  [[nodiscard]] virtual bool has_writable_disk() = 0;
  /// Unlocks the disks. @pre the machine is stopped.
  virtual Result<void> release_disks() = 0;
  /// Locks the disks again; at once, and all or none.
  /// @errors  Errc::kBusy: somebody else has one.
  virtual Result<void> reclaim_disks() = 0;
  /// Leaves the machine paused, without its disks' locks, until its user knows whether it runs on the other side.
  virtual void leave_to_user() = 0;
};

}  // namespace tandem::migration
