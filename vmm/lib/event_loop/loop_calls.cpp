// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/event_loop/loop_calls.hpp"

#include <condition_variable>
#include <mutex>

namespace tandem {

struct LoopCalls::State {
  std::mutex mutex;  // guards closed, and every call's end
  std::condition_variable changed;
  bool closed = false;
};

LoopCalls::LoopCalls(EventLoop& loop) : loop_(loop), state_(std::make_shared<State>()) {}

Result<void> LoopCalls::run_and_wait(std::function<void()> call) {
  const auto done = std::make_shared<bool>(false);
  std::unique_lock lock(state_->mutex);
  if (!state_->closed) {
    loop_.post([state = state_, done, work = std::move(call)] {
      {
        const std::lock_guard check(state->mutex);
        if (state->closed) {
          return;  // who waited has left, and taken along what `work` refers to
        }
      }
      work();
      const std::lock_guard finish(state->mutex);
      *done = true;
      state->changed.notify_all();
    });
    state_->changed.wait(lock, [&] { return *done || state_->closed; });
  }
  return *done ? Result<void>() : fail(Errc::kClosed, "the virtual machine has ended");
}

void LoopCalls::close() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->changed.notify_all();
}

}  // namespace tandem
