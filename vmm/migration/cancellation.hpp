// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::migration {

/// How other threads end a migration, for as long as it can be ended: until the hand-over begins.
/// @thread  any.
class Cancellation {
 public:
  static Result<std::unique_ptr<Cancellation>> create();

  /// Ends the migration, for a reason that its user is told.
  /// @return  false when it is too late.
  bool request(std::string reason);
  /// From now on it is too late.
  /// @errors  the reason, if it was requested before.
  Result<void> close();
  /// @errors  the reason, once it was requested.
  [[nodiscard]] Result<void> check() const;
  /// Readable once it was requested, and only then.
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  explicit Cancellation(UniqueFd event) : event_(std::move(event)) {}
  [[nodiscard]] Result<void> check_locked() const;

  UniqueFd event_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<std::string> reason_;
  bool closed_ = false;
};

}  // namespace tandem::migration
