// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "guest-agent/guest_control.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {

/// Freezes all file systems on block devices, and thaws them. At most one freeze is in force; whoever asked for it holds a
/// `Lease` and gives it back in time. A marker file tells the next agent that this one was killed in between.
///
/// The kernel freezes a file system once it has written what is dirty, which takes as long as the disk takes, for ever if that
/// hangs. So a thread of its own does it, and nothing else waits for it.
/// @thread any.
class Freezer {
 public:
  /// One freeze, from its beginning.
  struct Lease {
    UniqueFd settled{};  ///< An eventfd that is signalled once the file systems are frozen, or could not be.
    UniqueFd ended{};    ///< An eventfd that is signalled once the file systems have thawed.
  };
  using LeasePtr = std::shared_ptr<const Lease>;

  /// @param marker  path of the marker file, in a folder that exists, on a file system that is never frozen.
  Freezer(GuestControl& guest, std::string marker) : guest_(guest), marker_(std::move(marker)) {}
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;
  ~Freezer();

  /// Thaws everything if an agent before this one left it frozen.
  void thaw_what_was_left();

  /// Begins to freeze. @errors  Errc::kBusy: file systems are frozen already, or under way to that.
  Result<LeasePtr> begin();
  /// What has become of it: the frozen file systems' mount points, in the order in which they froze.
  /// @pre     `lease.settled` is signalled.
  /// @errors  why a file system did not freeze; nothing is frozen.
  Result<std::vector<std::string>> outcome(const Lease& lease);

  /// Thaws, and waits until that is done.
  /// @errors  Errc::kNotFound: nothing is frozen; Errc::kBusy: file systems are still being frozen.
  Result<void> thaw();
  /// Gives the lease back: thaws, or gives up what is still being frozen, without waiting for that.
  /// @return false: the freeze is no longer in force.
  bool thaw(const LeasePtr& lease);
  /// Thaws, or gives up what is still being frozen, and waits until nothing is frozen.
  void end();

  /// @errors  Errc::kBusy: whatever writes would hang.
  Result<void> refuse_if_frozen();

 private:
  enum class Phase : uint8_t { kThawed, kFreezing, kFrozen, kThawing };

  void freeze_all();
  Result<void> freeze_each(std::vector<std::string>& mount_points);
  void thaw_all(std::unique_lock<std::mutex>& lock);

  GuestControl& guest_;
  const std::string marker_;
  // Guards all below; nobody holds it while file systems freeze or thaw.
  std::mutex mutex_;
  std::condition_variable changed_;  // of phase_
  Phase phase_ = Phase::kThawed;
  bool is_given_up_ = false;  // while kFreezing: thaw what has frozen
  LeasePtr lease_;            // the last one; in force unless kThawed
  std::optional<Error> failure_;
  std::vector<std::string> mount_points_;
  std::thread worker_;  // of the last freeze
};

}  // namespace tandem::agent
