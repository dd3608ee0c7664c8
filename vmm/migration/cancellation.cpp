// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/cancellation.hpp"

namespace tandem::migration {

Result<std::unique_ptr<Cancellation>> Cancellation::create() {
  return std::unique_ptr<Cancellation>(new Cancellation(TANDEM_TRY(create_eventfd())));
}

bool Cancellation::request(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return false;
  }
  if (!reason_) {
    reason_ = std::move(reason);
    signal_eventfd(event_.get());
  }
  return true;
}

Result<void> Cancellation::close() {
  const std::lock_guard lock(mutex_);
  TANDEM_TRY(check_locked());
  closed_ = true;
  return {};
}

Result<void> Cancellation::check() const {
  const std::lock_guard lock(mutex_);
  return check_locked();
}

Result<void> Cancellation::check_locked() const {
  if (reason_) {
    return fail(Errc::kClosed, "{}", *reason_);
  }
  return {};
}

}  // namespace tandem::migration
