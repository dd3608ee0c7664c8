// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "guest-agent/guest_control.hpp"

namespace tandem::agent {

/// A guest that only notes what is done to it.
class FakeGuestControl final : public GuestControl {
 public:
  std::vector<Mount> mounts{};
  std::set<std::string> cannot_freeze{};  ///< Mount points that say kUnsupported.
  std::set<std::string> fails_freeze{};   ///< Mount points that say kIo.
  bool has_init = true;
  int64_t realtime_ns = 1'000;

  /// Everything that was done, in order.
  [[nodiscard]] std::vector<std::string> deeds() {
    const std::scoped_lock lock(mutex_);
    return deeds_;
  }

  /// What freezes at `mount_point` from now on takes until `release`.
  void hang(std::string mount_point) {
    const std::scoped_lock lock(mutex_);
    hanging_ = std::move(mount_point);
  }
  void release() {
    hang("");
    released_.notify_all();
  }

  Result<std::vector<Mount>> block_mounts() override { return mounts; }
  Result<void> freeze(const std::string& mount_point) override {
    if (cannot_freeze.contains(mount_point)) {
      return fail(Errc::kUnsupported, "{}: cannot be frozen", mount_point);
    }
    if (fails_freeze.contains(mount_point)) {
      return fail(Errc::kIo, "{}: fails", mount_point);
    }
    note("freeze " + mount_point);
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return mount_point != hanging_; });
    return {};
  }
  Result<void> thaw(const std::string& mount_point) override {
    note("thaw " + mount_point);
    return {};
  }
  Result<int64_t> set_realtime(uint64_t wanted_ns) override {
    return static_cast<int64_t>(wanted_ns) - std::exchange(realtime_ns, static_cast<int64_t>(wanted_ns));
  }
  Result<void> reseed(std::span<const std::byte> seed) override {
    note("reseed " + std::string(reinterpret_cast<const char*>(seed.data()), seed.size()));
    return {};
  }
  Result<std::vector<NetworkAddress>> announce() override {
    return std::vector<NetworkAddress>{{"eth0", "192.0.2.2", 0}};
  }
  [[nodiscard]] bool is_forced(const PowerRequest& request) const override { return request.forced || !has_init; }
  void sync() override { note("sync"); }
  Result<void> power(const PowerRequest& request) override {
    note(std::string(request.reboots ? "reboot" : "power off") + (is_forced(request) ? " by force" : ""));
    return {};
  }

 private:
  void note(std::string deed) {
    const std::scoped_lock lock(mutex_);
    deeds_.push_back(std::move(deed));
  }
  std::mutex mutex_;  // guards deeds_ and hanging_
  std::condition_variable released_;
  std::string hanging_;
  std::vector<std::string> deeds_;
};

}  // namespace tandem::agent
