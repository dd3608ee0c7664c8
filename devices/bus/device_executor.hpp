// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>

#include "vmm/lib/event_loop/event_loop.hpp"

namespace tandem::devices {

/// Where one device's code runs: its MMIO on vCPU threads and its asynchronous work on the event loop, all under one
/// mutex, so that the device itself is single-threaded. The bus takes the same mutex.
///
/// Lock order: a device's mutex is outermost; `IrqLine`, `CharBackend::write` and the event loop are leaves under it. No
/// thread ever holds the mutexes of two devices.
class DeviceExecutor {
 public:
  /// @pre `loop` outlives the executor, and the executor the loop's last callback.
  explicit DeviceExecutor(EventLoop& loop) : loop_(loop) {}
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  /// As EventLoop::watch; `callback` is called with the mutex held. @thread any.
  Result<EventLoop::Watch> watch(int fd, Events events, EventLoop::Callback callback) {
    return loop_.watch(fd, events, [this, run = std::move(callback)](Events which) {
      const std::lock_guard lock(mutex_);
      run(which);
    });
  }

  /// As EventLoop::post; `task` is called with the mutex held. @thread any, also with the mutex held.
  void post(std::function<void()> task) {
    loop_.post([this, run = std::move(task)] {
      const std::lock_guard lock(mutex_);
      run();
    });
  }

  /// Guards the device's state.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

 private:
  EventLoop& loop_;
  std::mutex mutex_;
};

}  // namespace tandem::devices
