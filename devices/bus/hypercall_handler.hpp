// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem::devices {

/// Arguments of a call that a handler gets.
inline constexpr size_t kHypercallArguments = 3;

/// One call of a guest after the SMC Calling Convention. (Arm DEN 0028F, "SMC64/HVC64 argument passing")
struct Hypercall {
  /// The instruction that made it.
  enum class Conduit : uint8_t { kHvc, kSmc };
  Conduit conduit;
  uint32_t function;                                    ///< w0.
  std::array<uint64_t, kHypercallArguments> arguments;  ///< x1, x2, x3.
  unsigned vcpu;                                        ///< Index of the caller.
};

/// What x0 holds after a call that nobody answers. (Arm DEN 0028F, "Unknown Function Identifier")
inline constexpr uint64_t kHypercallNotSupported = ~uint64_t{0};

/// Answers the calls of one range of function identifiers.
/// @thread  the bus calls one handler from one thread at a time.
class HypercallHandler {
 public:
  virtual ~HypercallHandler() = default;
  /// @pre     the call is an HVC, its function in the handler's range.
  /// @return  x0; all other registers keep what they hold.
  virtual uint64_t call(const Hypercall& hypercall) = 0;
};

}  // namespace tandem::devices
