// SPDX-License-Identifier: Apache-2.0
// usage: preemptor PERIOD_US
//
// Takes the CPU from whatever runs on it every PERIOD_US microseconds, for as short a time as it can, until it is killed.
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>

int main(int argc, char** argv) {
  constexpr long kNanoseconds = 1'000'000'000;
  const long period_ns = argc == 2 ? std::strtol(argv[1], nullptr, 10) * 1000 : 0;
  if (period_ns <= 0 || period_ns >= kNanoseconds) {
    std::fprintf(stderr, "usage: preemptor PERIOD_US\n");
    return 2;
  }
  const sched_param priority{.sched_priority = 1};
  timespec next{};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0 || clock_gettime(CLOCK_MONOTONIC, &next) != 0) {
    std::perror("preemptor");
    return 1;
  }
  for (;;) {
    next.tv_nsec += period_ns;
    next.tv_sec += next.tv_nsec / kNanoseconds;
    next.tv_nsec %= kNanoseconds;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr) == EINTR) {
    }
  }
}
