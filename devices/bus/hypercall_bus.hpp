// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "devices/bus/hypercall_handler.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// A run of function identifiers.
struct FunctionRange {
  uint32_t first;
  uint32_t count;

  [[nodiscard]] constexpr bool contains(uint32_t function) const {
    return function >= first && function - first < count;
  }
};

/// Maps disjoint ranges of functions to handlers, serialises the calls of each, and applies the policy for calls that
/// nobody answers: an unknown function, and any function by SMC, is NOT_SUPPORTED, counted, and logged at doubling
/// intervals.
class HypercallBus {
 public:
  /// Connects `handler` to `functions`; `mutex` is held during each call.
  /// @pre     no call is in progress; handler and mutex outlive the bus; `functions` is not empty and does not wrap.
  /// @errors  Errc::kExists: the range overlaps another one.
  Result<void> map(FunctionRange functions, std::string name, HypercallHandler& handler, std::mutex& mutex);

  /// @return  x0 for the caller.
  /// @thread  any.
  uint64_t call(const Hypercall& hypercall);

  /// Number of calls so far that the policy answered. @thread any.
  [[nodiscard]] uint64_t bad_call_count() const { return bad_calls_.total(); }

 private:
  struct Service {
    FunctionRange functions;
    std::string name;
    HypercallHandler* handler;
    std::mutex* mutex;
  };

  std::vector<Service> services_;
  log::RateLimit bad_calls_;
};

}  // namespace tandem::devices
