// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "vmm/lib/deadline/deadline.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::migration {

/// A connection that carries bytes both ways. Every wait has an end. One thread uses it.
class ByteChannel {
 public:
  virtual ~ByteChannel() = default;

  /// Sends all of `bytes`.
  /// @errors  Errc::kClosed: the other side is gone; Errc::kIo: the deadline has passed, or any other failure. How much
  ///          was sent is unknown then.
  virtual Result<void> write(std::span<const std::byte> bytes, const Deadline& deadline) = 0;

  /// Fills `out`.
  /// @errors  as `write`.
  virtual Result<void> read(std::span<std::byte> out, const Deadline& deadline) = 0;

  /// Whether `read` would find a byte, the end, or an error at once.
  [[nodiscard]] virtual bool has_input() = 0;

  /// Says that nothing more will be written.
  virtual void end_output() = 0;
};

}  // namespace tandem::migration
