// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tandem {

/// What a guest wants of its machine.
struct GuestRequest {
  enum class Kind : uint8_t { kPowerOff, kReset, kCrash };
  Kind kind;
  std::string text;            ///< kReset: the call. kCrash: the reason.
  uint64_t resets_before = 0;  ///< kReset: how many the machine had seen when it was asked.
};

/// What the guest has asked for and not got yet, in order. vCPUs' threads ask; the control thread answers, once the machine
/// may be changed: a paused one keeps its guest waiting.
/// @thread any.
class GuestRequests {
 public:
  void add(GuestRequest request);
  /// Removes them all. What is returned has to be answered.
  [[nodiscard]] std::vector<GuestRequest> take();

 private:
  std::mutex mutex_;  // guards requests_
  std::vector<GuestRequest> requests_;
};

}  // namespace tandem
