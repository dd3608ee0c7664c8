// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/freezer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <ranges>
#include <utility>

#include "vmm/lib/thread/start_thread.hpp"

namespace tandem::agent {

Freezer::~Freezer() {
  end();
  if (worker_.joinable()) {
    worker_.join();
  }
}

void Freezer::end() {
  static_cast<void>(thaw());
  std::unique_lock lock(mutex_);
  is_given_up_ = true;
  changed_.wait(lock, [this] { return phase_ == Phase::kThawed; });
}

void Freezer::thaw_what_was_left() {
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

Result<Freezer::LeasePtr> Freezer::begin() {
  const std::scoped_lock lock(mutex_);
  if (phase_ != Phase::kThawed) {
    return fail(Errc::kBusy, "file systems are {}", phase_ == Phase::kFreezing ? "being frozen" : "frozen already");
  }
  auto lease = std::make_shared<Lease>();
  lease->settled = TANDEM_TRY(create_eventfd());
  lease->ended = TANDEM_TRY(create_eventfd());
  const UniqueFd marker(::open(marker_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!marker) {
    return fail_errno("{}", marker_);
  }
  if (worker_.joinable()) {
    worker_.join();  // it has done its work
  }
  auto worker = start_thread("freeze", [this] { freeze_all(); });
  if (!worker) {
    ::unlink(marker_.c_str());
    return std::unexpected(std::move(worker).error());
  }
  worker_ = *std::move(worker);
  phase_ = Phase::kFreezing;
  is_given_up_ = false;
  failure_.reset();
  mount_points_.clear();
  lease_ = std::move(lease);
  return lease_;
}

/// What the worker does.
void Freezer::freeze_all() {
  std::vector<std::string> mount_points;
  auto frozen = freeze_each(mount_points);
  std::unique_lock lock(mutex_);
  mount_points_ = std::move(mount_points);
  if (frozen && is_given_up_) {
    frozen = fail(Errc::kIo, "it was given up");
  }
  if (frozen) {
    phase_ = Phase::kFrozen;
  } else {
    failure_ = std::move(frozen).error();
    thaw_all(lock);
  }
  signal_eventfd(lease_->settled.get());
  changed_.notify_all();
}

/// The last mounted first: an image in a file is frozen before what that file is on.
Result<void> Freezer::freeze_each(std::vector<std::string>& mount_points) {
  const std::vector<Mount> mounts = TANDEM_TRY(guest_.block_mounts());
  for (const Mount& mount : std::views::reverse(mounts)) {
    auto frozen = guest_.freeze(mount.mount_point);
    if (frozen) {
      mount_points.push_back(mount.mount_point);
    } else if (frozen.error().code() != Errc::kUnsupported) {
      return frozen;
    }
  }
  return {};
}

/// @pre  `lock` is held; it is not while file systems thaw.
void Freezer::thaw_all(std::unique_lock<std::mutex>& lock) {
  phase_ = Phase::kThawing;
  const std::vector<std::string> mount_points = mount_points_;
  lock.unlock();
  for (const std::string& mount_point : std::views::reverse(mount_points)) {
    // Whoever thawed it before did what was asked for.
    static_cast<void>(guest_.thaw(mount_point));
  }
  ::unlink(marker_.c_str());
  lock.lock();
  phase_ = Phase::kThawed;
  signal_eventfd(lease_->ended.get());
  changed_.notify_all();
}

Result<std::vector<std::string>> Freezer::outcome(const Lease& lease) {
  const std::scoped_lock lock(mutex_);
  if (&lease != lease_.get() || phase_ != Phase::kFrozen) {
    return std::unexpected(failure_.value_or(Error(Errc::kIo, "file systems have thawed already")));
  }
  return mount_points_;
}

Result<void> Freezer::thaw() {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::kFreezing) {
    return fail(Errc::kBusy, "file systems are being frozen");
  }
  if (phase_ == Phase::kThawed) {
    return fail(Errc::kNotFound, "file systems are not frozen");
  }
  if (phase_ == Phase::kFrozen) {
    thaw_all(lock);
  }
  changed_.wait(lock, [this, lease = lease_] { return phase_ == Phase::kThawed || lease_ != lease; });
  return {};
}

bool Freezer::thaw(const LeasePtr& lease) {
  std::unique_lock lock(mutex_);
  if (lease_ != lease || phase_ == Phase::kThawed || phase_ == Phase::kThawing) {
    return false;
  }
  if (phase_ == Phase::kFreezing) {
    is_given_up_ = true;
  } else {
    thaw_all(lock);
  }
  return true;
}

Result<void> Freezer::refuse_if_frozen() {
  const std::scoped_lock lock(mutex_);
  if (phase_ == Phase::kThawed) {
    return {};
  }
  return fail(Errc::kBusy, "file systems are {}", phase_ == Phase::kFreezing ? "being frozen" : "frozen");
}

}  // namespace tandem::agent
