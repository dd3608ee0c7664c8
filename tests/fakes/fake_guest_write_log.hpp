// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "vmm/lib/guest_memory/ram_write_log.hpp"

namespace tandem {

/// A hypervisor whose log the test writes.
class FakeGuestWriteLog final : public GuestWriteLog {
 public:
  /// @param shape  a bitmap of the RAM.
  explicit FakeGuestWriteLog(DirtyBitmap shape) : written(std::move(shape)) {}

  Result<void> start() override {
    if (fails) {
      return fail(Errc::kOutOfMemory, "no memory for it");
    }
    is_on = true;
    written.clear();
    return {};
  }
  Result<void> collect(DirtyBitmap& into) override {
    if (fails) {
      return fail(Errc::kIo, "cannot read the log");
    }
    written.harvest(into);
    return {};
  }
  Result<void> stop() override {
    is_on = false;
    return {};
  }

  DirtyBitmap written;
  bool is_on = false;
  bool fails = false;
};

}  // namespace tandem
