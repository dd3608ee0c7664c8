// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "vmm/lib/clock/clock.hpp"

namespace tandem {

/// A clock that stands still until it is told otherwise.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t realtime_ns = 0) : realtime_ns_(realtime_ns) {}

  [[nodiscard]] int64_t realtime_ns() const override { return realtime_ns_; }
  void set_realtime_ns(int64_t realtime_ns) { realtime_ns_ = realtime_ns; }
  void advance_ns(int64_t duration_ns) { realtime_ns_ += duration_ns; }

 private:
  std::atomic<int64_t> realtime_ns_;
};

}  // namespace tandem
