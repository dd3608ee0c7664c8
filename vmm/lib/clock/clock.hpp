// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tandem {

/// Source of wall-clock time, so that tests can set it.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds since 1970-01-01 00:00 UTC. @thread any.
  [[nodiscard]] virtual int64_t realtime_ns() const = 0;
};

/// The host's CLOCK_REALTIME.
class HostClock final : public Clock {
 public:
  [[nodiscard]] int64_t realtime_ns() const override;
};

}  // namespace tandem
