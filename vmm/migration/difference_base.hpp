// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vmm/lib/guest_memory/dirty_bitmap.hpp"
#include "vmm/lib/guest_memory/ram_write_log.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/migration/snapshot.hpp"

namespace tandem::migration {

/// The snapshot that the RAM of a machine comes from, restored from it or saved in it last, and what was written since: what
/// the machine's next difference has to hold. A save that fails changes nothing of that.
/// @thread  one at a time.
class DifferenceBase {
 public:
  /// There is none yet. @pre `log` outlives it.
  explicit DifferenceBase(RamWriteLog& log) : log_(log), changes_(log.make_bitmap()) {}
  DifferenceBase(const DifferenceBase&) = delete;
  DifferenceBase& operator=(const DifferenceBase&) = delete;
  ~DifferenceBase() = default;

  /// RAM is what `snapshot` has, and from now on what is written to it is noted.
  /// @errors  as the log cannot be had; there is no base then.
  Result<void> start(const Snapshot& snapshot);

  /// Whether a difference to `snapshot` can be taken.
  /// @errors  Errc::kInvalidArgument: the machine's RAM does not come from it. One line that names both.
  Result<void> require(const Snapshot& snapshot) const;

  /// Notes what was written so far. The RAM of now is what `accept` is to be told of; without a base, noting begins here.
  /// @pre     the machine stands still, and its state was saved, which writes to RAM.
  /// @errors  as the log cannot be read or had.
  Result<void> collect();
  /// The pages that were written between base and `collect`, at least. @pre there is a base.
  [[nodiscard]] const DirtyBitmap& changes() const { return changes_; }
  /// The RAM of the last `collect` is in the snapshot `identity` at `path`, which is the base now.
  void accept(const Checksum& identity, std::string path);
  /// The snapshot for which `collect` was called did not come about.
  void discard();

 private:
  struct Named {
    Checksum identity;
    std::string path;  ///< For messages.
  };
  RamWriteLog& log_;
  std::optional<Named> base_;
  std::unique_ptr<RamWriteLog::Reader> writes_;  // null: nothing is noted, there is no base
  DirtyBitmap changes_;
};

}  // namespace tandem::migration
