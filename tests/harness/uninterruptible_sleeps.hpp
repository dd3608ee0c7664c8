// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::tests {

/// Counts the uninterruptible sleeps of one thread. /proc does not have them; the kernel's own event of its switches does.
class UninterruptibleSleeps {
 public:
  /// Counts from now on. @return nothing if there is no such thread, or no leave to look.
  static std::optional<UninterruptibleSleeps> of(pid_t thread);

  /// How many there were so far. @return nothing if the kernel does not tell.
  [[nodiscard]] std::optional<uint64_t> count() const;

 private:
  explicit UninterruptibleSleeps(UniqueFd event) : event_(std::move(event)) {}
  UniqueFd event_;
};

}  // namespace tandem::tests
