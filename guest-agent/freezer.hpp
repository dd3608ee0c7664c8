// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "guest-agent/guest_control.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {

/// Freezes all file systems on block devices, and thaws them. At most one freeze is in force; whoever asked for it holds a
/// `Lease` and gives it back in time. A marker file tells the next agent that this one was killed in between.
/// @thread any.
class Freezer {
 public:
  /// One freeze.
  struct Lease {
    std::vector<std::string> mount_points{};
    UniqueFd ended{};  ///< An eventfd that is signalled once the file systems have thawed.
  };

  /// @param marker  path of the marker file, in a folder that exists, on a file system that is never frozen.
  Freezer(GuestControl& guest, std::string marker) : guest_(guest), marker_(std::move(marker)) {}
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;
  ~Freezer() { thaw(); }

  /// Thaws everything if an agent before this one left it frozen.
  void thaw_what_was_left();

  /// @errors  Errc::kBusy: frozen already; any other: nothing is frozen.
  Result<std::shared_ptr<const Lease>> freeze();

  /// @return false: nothing was frozen.
  bool thaw();
  /// @return false: the freeze is no longer in force.
  bool thaw(const std::shared_ptr<const Lease>& lease);

  [[nodiscard]] bool is_frozen();

 private:
  Result<void> freeze_all(Lease& lease);
  void thaw_all(const std::vector<std::string>& mount_points);
  void end_lease();

  GuestControl& guest_;
  const std::string marker_;
  std::mutex mutex_;  // guards lease_; held while file systems freeze and thaw
  std::shared_ptr<const Lease> lease_;
};

}  // namespace tandem::agent
