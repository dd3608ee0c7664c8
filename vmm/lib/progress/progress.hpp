// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "vmm/lib/result/result.hpp"

namespace tandem {

/// How far one phase of some work has come.
struct ProgressReport {
  std::string_view phase;  ///< For people: "reading RAM". The same text for all reports of a phase.
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
  bool operator==(const ProgressReport&) const = default;
};

/// Is told how work goes on that takes long, and may end it.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;

  /// Called often: for each few MiB, and for the first and the last byte of a phase.
  /// @errors  any: the work ends with that error.
  /// @thread  the one that works.
  virtual Result<void> report(const ProgressReport& progress) = 0;
};

/// For work that nobody watches.
class SilentProgress final : public ProgressSink {
 public:
  Result<void> report(const ProgressReport& /*progress*/) override { return {}; }
};

}  // namespace tandem
