// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace tandem::fakes {

/// A disk that two machines know: who has its lock.
class SharedDisk {
 public:
  enum class Owner : int { kNobody, kSource, kTarget };

  explicit SharedDisk(Owner owner) : owner_(owner) {}
  [[nodiscard]] Owner owner() const { return owner_; }
  /// @return false if somebody else has it.
  bool lock(Owner owner) {
    Owner expected = Owner::kNobody;
    return owner_.compare_exchange_strong(expected, owner) || expected == owner;
  }
  /// Does nothing unless `owner` has it.
  void unlock(Owner owner) { owner_.compare_exchange_strong(owner, Owner::kNobody); }

 private:
  std::atomic<Owner> owner_;
};

}  // namespace tandem::fakes
