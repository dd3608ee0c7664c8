// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "devices/backend/char_descriptor.hpp"
#include "devices/backend/char_ring.hpp"
#include "devices/backend/loop_timer.hpp"
#include "devices/bus/device_executor.hpp"

namespace tandem::devices {

/// Most output that waits for a reader who is there but does not read [bytes].
inline constexpr size_t kOutputRingBytes = 256U << 10;
/// Most output that is kept for a reader who is yet to come [bytes].
inline constexpr size_t kHistoryBytes = 64U << 10;

/// The output side of a console.
///
/// Guests print byte by byte. What comes after a pause is written at once, so an echo is not late; what follows within
/// a short time is collected and goes out from the event loop in one write. Printing costs the vCPU no system call per
/// byte, and neither the loop nor the reader takes the CPU from it for every few of them.
class CharOutput {
 public:
  /// What becomes of output while no descriptor is attached.
  enum class Unattached : uint8_t {
    kDrop,    ///< It is dropped and counted.
    kKeep,    ///< The newest is kept for the next descriptor.
    kReplay,  ///< As kKeep; and the next descriptor first gets what the last one had, too.
  };

  static Result<std::unique_ptr<CharOutput>> create(DeviceExecutor& executor, Unattached unattached);
  CharOutput(const CharOutput&) = delete;
  CharOutput& operator=(const CharOutput&) = delete;
  /// Gives a reader a moment to take what is left.
  ~CharOutput();

  /// Sends output to `descriptor`, what was kept first. `on_end` is called on the loop when nothing can be written any
  /// more; the descriptor is detached by then.
  /// @pre not attached.
  Result<void> attach(CharDescriptor descriptor, std::function<void()> on_end);
  void detach();

  void write(std::span<const std::byte> bytes);
  [[nodiscard]] uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  CharOutput(DeviceExecutor& executor, Unattached unattached);
  void schedule_flush();
  void flush();
  /// Writes until all is written or something is in the way. @pre attached.
  IoStatus send();
  void wait_until_writable();

  // Fixed configuration
  DeviceExecutor& executor_;
  const Unattached unattached_;

  // Connections
  std::unique_ptr<LoopTimer> timer_;
  std::optional<CharDescriptor> descriptor_;
  EventLoop::Watch watch_;  // none if the descriptor cannot be watched: it never waits then
  std::function<void()> on_end_;

  CharRing ring_;
  bool flush_scheduled_ = false;  // by the timer
  bool blocked_ = false;          // until the descriptor is writable
  uint64_t sent_at_ns_ = 0;       // CLOCK_MONOTONIC
  uint64_t dropped_bytes_ = 0;
};

}  // namespace tandem::devices
