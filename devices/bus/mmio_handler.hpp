// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>

namespace tandem::devices {

/// One access within a handler's window.
struct MmioAccess {
  uint64_t offset;       ///< From the start of the window [bytes].
  unsigned width_bytes;  ///< 1, 2, 4 or 8.
};

/// The ways in which an access can be wrong. What it then costs is the bus's policy, not the device's.
enum class BadAccess : uint8_t {
  kNoRegister,  ///< Nothing is there.
  kWidth,       ///< Something is there, but not for accesses of this width.
  kAlignment,   ///< The offset is no multiple of the width.
  kReadOnly,    ///< Write to a register that can only be read.
  kWriteOnly,   ///< Read of a register that can only be written.
};

using MmioRead = std::expected<uint64_t, BadAccess>;
using MmioWrite = std::expected<void, BadAccess>;

/// Answers one read or write at an offset within its own window; knows neither its address nor its vCPU.
/// @thread  the bus calls one handler from one thread at a time.
class MmioHandler {
 public:
  virtual ~MmioHandler() = default;
  /// @pre access.offset + access.width_bytes does not exceed the window.
  virtual MmioRead read(MmioAccess access) = 0;
  /// @pre as for `read`; `value` has no bits above the width.
  virtual MmioWrite write(MmioAccess access, uint64_t value) = 0;
};

}  // namespace tandem::devices
