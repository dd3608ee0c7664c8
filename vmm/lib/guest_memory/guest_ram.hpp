// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem {

/// Provider side of guest RAM: one host mapping behind one range of guest-physical addresses, aligned so that the host
/// can use 2 MiB mappings for both.
class GuestRam {
 public:
  /// Private anonymous memory, with transparent huge pages where the host has them.
  /// @errors  Errc::kOutOfMemory: the host's overcommit policy or limits refuse that much.
  static Result<GuestRam> create_anonymous(GuestRange range);

  /// A private mapping of `file` from offset 0: reads come from the file lazily, writes stay in this process.
  /// @errors  Errc::kOutOfRange: the file is shorter than the range.
  static Result<GuestRam> create_private_file(GuestRange range, UniqueFd file);

  /// Memory that another process can map too, by `shared_fd()`.
  static Result<GuestRam> create_shared(GuestRange range);

  [[nodiscard]] GuestRange range() const { return range_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  /// The memfd of shared memory, or -1.
  [[nodiscard]] int shared_fd() const { return backing_ == Backing::kShared ? file_.get() : -1; }

  /// Whether the private file has become shorter than the RAM that is mapped from it.
  [[nodiscard]] bool is_cut_off() const;

  /// Gives the host pages that lie wholly inside `range` back to the host; the guest reads zeros there afterwards,
  /// whatever the backing.
  /// @pre     `range` is inside `range()`.
  /// @errors  as the system call fails; the contents are then unchanged.
  /// @thread  any; vCPUs may run.
  Result<void> discard(GuestRange range);

  /// As `discard`, for all of it.
  Result<void> discard_all() { return discard(range_); }

 private:
  enum class Backing : uint8_t { kAnonymous, kPrivateFile, kShared };
  GuestRam(GuestRange range, MappedRegion mapping, UniqueFd file, Backing backing)
      : range_(range), mapping_(std::move(mapping)), file_(std::move(file)), backing_(backing) {}

  GuestRange range_;
  MappedRegion mapping_;
  UniqueFd file_;
  Backing backing_;
};

}  // namespace tandem
