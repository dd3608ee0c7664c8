// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/freezer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <ranges>

namespace tandem::agent {

void Freezer::thaw_what_was_left() {
  const std::scoped_lock lock(mutex_);
  if (::access(marker_.c_str(), F_OK) != 0) {
    return;
  }
  if (const auto mounts = guest_.block_mounts()) {
    for (const Mount& mount : *mounts) {
      // Those that are not frozen say so.
      static_cast<void>(guest_.thaw(mount.mount_point));
    }
  }
  ::unlink(marker_.c_str());
}

Result<std::shared_ptr<const Freezer::Lease>> Freezer::freeze() {
  const std::scoped_lock lock(mutex_);
  if (lease_) {
    return fail(Errc::kBusy, "file systems are frozen already");
  }
  auto lease = std::make_shared<Lease>();
  lease->ended = TANDEM_TRY(create_eventfd());
  const UniqueFd marker(::open(marker_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!marker) {
    return fail_errno("{}", marker_);
  }
  if (auto frozen = freeze_all(*lease); !frozen) {
    thaw_all(lease->mount_points);
    return std::unexpected(std::move(frozen).error());
  }
  lease_ = std::move(lease);
  return lease_;
}

/// The last mounted first: an image in a file is frozen before what that file is on.
Result<void> Freezer::freeze_all(Lease& lease) {
  const std::vector<Mount> mounts = TANDEM_TRY(guest_.block_mounts());
  for (const Mount& mount : std::views::reverse(mounts)) {
    auto frozen = guest_.freeze(mount.mount_point);
    if (frozen) {
      lease.mount_points.push_back(mount.mount_point);
    } else if (frozen.error().code() != Errc::kUnsupported) {
      return frozen;
    }
  }
  return {};
}

void Freezer::thaw_all(const std::vector<std::string>& mount_points) {
  for (const std::string& mount_point : std::views::reverse(mount_points)) {
    // Whoever thawed it before did what was asked for.
    static_cast<void>(guest_.thaw(mount_point));
  }
  ::unlink(marker_.c_str());
}

void Freezer::end_lease() {
  thaw_all(lease_->mount_points);
  signal_eventfd(lease_->ended.get());
  lease_.reset();
}

bool Freezer::thaw() {
  const std::scoped_lock lock(mutex_);
  if (!lease_) {
    return false;
  }
  end_lease();
  return true;
}

bool Freezer::thaw(const std::shared_ptr<const Lease>& lease) {
  const std::scoped_lock lock(mutex_);
  if (lease_ != lease) {
    return false;
  }
  end_lease();
  return true;
}

bool Freezer::is_frozen() {
  const std::scoped_lock lock(mutex_);
  return lease_ != nullptr;
}

}  // namespace tandem::agent
