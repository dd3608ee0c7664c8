// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/loop_timer.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace tandem::devices {

Result<std::unique_ptr<LoopTimer>> LoopTimer::create(DeviceExecutor& executor, Base base, std::function<void()> fire) {
  const clockid_t clock = base == Base::kRealtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  UniqueFd fd(::timerfd_create(clock, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd) {
    return fail_errno("timerfd_create");
  }
  std::unique_ptr<LoopTimer> timer(new LoopTimer(std::move(fd), std::move(fire)));
  timer->watch_ = TANDEM_TRY(executor.watch(timer->timer_.get(), Events::kReadable, [self = timer.get()](Events) {
    // Nothing to be read means that it was set anew after it had fired: that time is to come.
    if (drain_eventfd(self->timer_.get())) {
      self->fire_();
    }
  }));
  return timer;
}

void LoopTimer::arm_after_ns(uint64_t delay_ns) { set(std::max<uint64_t>(delay_ns, 1), 0); }

void LoopTimer::arm_at_ns(int64_t deadline_ns) {
  set(static_cast<uint64_t>(std::max<int64_t>(deadline_ns, 1)), TFD_TIMER_ABSTIME);
}

void LoopTimer::disarm() { set(0, 0); }

void LoopTimer::set(uint64_t time_ns, int flags) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const itimerspec when{.it_interval = {},
                        .it_value = {.tv_sec = static_cast<time_t>(time_ns / kNsPerSecond),
                                     .tv_nsec = static_cast<long>(time_ns % kNsPerSecond)}};
  // Cannot fail: the descriptor is a timer, and the time is in range.
  ::timerfd_settime(timer_.get(), flags, &when, nullptr);
}

}  // namespace tandem::devices
