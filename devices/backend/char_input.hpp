// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/backend/char_backend.hpp"
#include "devices/backend/char_descriptor.hpp"
#include "devices/backend/loop_timer.hpp"
#include "devices/bus/device_executor.hpp"

namespace tandem::devices {

/// Most input that was read and waits for the guest [bytes]; more stays with whoever sends it.
inline constexpr size_t kInputPendingBytes = 4U << 10;

/// The input side of a console: reads from a descriptor and hands on what the sink has room for.
/// It reads a little ahead of the sink, so that escape keys are found even if the guest takes no input.
class CharInput {
 public:
  /// Sees input first: moves what is for the guest to the front. @return how many bytes that is.
  using Filter = std::function<size_t(std::span<std::byte>)>;
  using OnEnd = std::function<void(IoStatus)>;

  static Result<std::unique_ptr<CharInput>> create(DeviceExecutor& executor, Filter filter = nullptr);
  CharInput(const CharInput&) = delete;
  CharInput& operator=(const CharInput&) = delete;

  /// Takes input from `descriptor` until it ends (kEnd) or must not be read now (kBackground); then `on_end` is called on
  /// the loop, and the descriptor is detached by then.
  /// @pre not attached.
  Result<void> attach(CharDescriptor descriptor, OnEnd on_end);
  void detach();
  [[nodiscard]] bool is_attached() const { return descriptor_.has_value(); }

  /// As CharBackend.
  void set_sink(CharSink* sink);
  void resume_input();

 private:
  CharInput(DeviceExecutor& executor, Filter filter) : executor_(executor), filter_(std::move(filter)) {}
  void work();
  void read_ahead();
  void deliver();
  void schedule_work();
  void set_reading(bool reading);

  // Fixed configuration
  DeviceExecutor& executor_;
  const Filter filter_;

  // Connections
  CharSink* sink_ = nullptr;
  std::unique_ptr<LoopTimer> timer_;
  std::optional<CharDescriptor> descriptor_;
  EventLoop::Watch watch_;  // none if the descriptor cannot be watched: it is always ready then
  OnEnd on_end_;

  std::vector<std::byte> pending_;  // read, and yet to be handed on
  bool reading_ = false;            // the watch is armed
  bool work_scheduled_ = false;     // by the timer
};

}  // namespace tandem::devices
