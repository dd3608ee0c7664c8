// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/uninterruptible_sleeps.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

namespace tandem::tests {

std::optional<UninterruptibleSleeps> UninterruptibleSleeps::of(pid_t thread) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  std::ifstream number("/sys/kernel/tracing/events/sched/sched_switch/id");
  if (!(number >> attributes.config)) {
    return std::nullopt;
  }
  UniqueFd event(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  // 2 is "D" in the event's own code: not TASK_RUNNING, and not preempted on its way.
  if (!event || ::ioctl(event.get(), PERF_EVENT_IOC_SET_FILTER, "prev_state == 2") != 0) {
    return std::nullopt;
  }
  return UninterruptibleSleeps(std::move(event));
}

std::optional<uint64_t> UninterruptibleSleeps::count() const {
  uint64_t value = 0;
  return ::read(event_.get(), &value, sizeof value) == sizeof value ? std::optional(value) : std::nullopt;
}

}  // namespace tandem::tests
