// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "vmm/lib/result/result.hpp"

namespace tandem {

/// While it lives, a file that is cut off under memory mapped from it ends the process by one line and status 1, not by
/// SIGBUS: whoever meets the hole, a vCPU or a device, cannot go on. The terminal is given back.
class RamFileGuard {
 public:
  /// @param ram   the memory; outlives the guard.
  /// @param line  what is said then, without a newline.
  /// @pre         no other guard exists; the process has not entered raw mode yet, whose signal handling comes second.
  static Result<std::unique_ptr<RamFileGuard>> create(std::span<const std::byte> ram, std::string line);
  RamFileGuard(const RamFileGuard&) = delete;
  RamFileGuard& operator=(const RamFileGuard&) = delete;
  ~RamFileGuard();

 private:
  RamFileGuard() = default;
};

}  // namespace tandem
