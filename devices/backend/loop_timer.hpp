// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "devices/bus/device_executor.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// A one-shot timer as a device needs it. Fires under the device's mutex.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Whom to call when it fires. @pre not armed.
  virtual void set_callback(std::function<void()> fire) = 0;
  /// Fires once, `delay_ns` from now; replaces what was set before.
  virtual void arm_after_ns(uint64_t delay_ns) = 0;
  /// Fires once when the timer's clock shows `deadline_ns`; at once if it does already.
  virtual void arm_at_ns(int64_t deadline_ns) = 0;
  virtual void disarm() = 0;
};

/// A timer that fires on the event loop.
/// @thread  any; destroy it on the loop's thread, or while the loop is not running.
class LoopTimer final : public Timer {
 public:
  enum class Base : uint8_t {
    kMonotonic,  ///< Time that passes.
    kRealtime,   ///< The wall clock; follows its being set.
  };

  static Result<std::unique_ptr<LoopTimer>> create(DeviceExecutor& executor, Base base,
                                                   std::function<void()> fire = nullptr);
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  void set_callback(std::function<void()> fire) override { fire_ = std::move(fire); }
  void arm_after_ns(uint64_t delay_ns) override;
  void arm_at_ns(int64_t deadline_ns) override;
  void disarm() override;

 private:
  LoopTimer(UniqueFd timer, std::function<void()> fire) : timer_(std::move(timer)), fire_(std::move(fire)) {}
  void set(uint64_t time_ns, int flags);

  UniqueFd timer_;
  std::function<void()> fire_;
  EventLoop::Watch watch_;
};

}  // namespace tandem::devices
