// SPDX-License-Identifier: Apache-2.0
#include "tests/pv/vcpu_threads.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace tandem::tests {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

pv_vcpu_state_record* record_of(pv::VcpuStateBackend& backend, unsigned vcpu) {
  return reinterpret_cast<pv_vcpu_state_record*>(backend.region().data()) + vcpu;
}

PollCount poll(pv::VcpuStateBackend& backend, unsigned other, uint64_t polls) {
  const volatile __le32& preempted = record_of(backend, other)->preempted;
  PollCount count{.polls = polls};
  for (uint64_t i = 0; i < polls; ++i) {
    count.preempted += preempted;
  }
  return count;
}

}  // namespace

RecordView read_record(pv::VcpuStateBackend& backend, unsigned vcpu) {
  const volatile pv_vcpu_state_record& record = *record_of(backend, vcpu);
  return {.preempted = record.preempted, .preempt_count = record.preempt_count};
}

bool is_record_zero(pv::VcpuStateBackend& backend, unsigned vcpu) {
  const auto* words = reinterpret_cast<const volatile uint64_t*>(record_of(backend, vcpu));
  return std::all_of(words, words + PV_VCPU_STATE_RECORD_BYTES / sizeof(uint64_t),
                     [](uint64_t word) { return word == 0; });
}

void pin_to_cpu(unsigned cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
    give_up("there is no CPU " + std::to_string(cpu));
  }
}

uint64_t involuntary_switches() {
  constexpr std::string_view kKey = "nonvoluntary_ctxt_switches:";
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kKey)) {
      return std::stoull(line.substr(kKey.size()));
    }
  }
  give_up("/proc/thread-self/status has no count of switches");
}

void spin_until(const std::atomic<int>& count, int wanted) {
  while (count.load() < wanted) {
  }
}

AttachedVcpu::AttachedVcpu(pv::VcpuStateBackend& backend, unsigned vcpu) : backend_(backend), vcpu_(vcpu) {
  if (const Result<void> attached = backend.attach_thread(vcpu); !attached) {
    give_up(attached.error().message());
  }
}

AttachedVcpu::~AttachedVcpu() { backend_.detach_thread(vcpu_); }

PollCount poll_each_other(pv::VcpuStateBackend& backend, unsigned cpu_of_first, unsigned cpu_of_second,
                          uint64_t polls) {
  std::atomic<int> started = 0;
  std::atomic<int> finished = 0;
  PollCount counts[2];
  const auto run = [&](unsigned vcpu, unsigned cpu) {
    pin_to_cpu(cpu);
    const AttachedVcpu attached(backend, vcpu);
    backend.activate(vcpu);
    ++started;
    spin_until(started, 2);
    counts[vcpu] = poll(backend, 1 - vcpu, polls);
    ++finished;
    spin_until(finished, 2);
    backend.deactivate(vcpu);
  };
  std::thread first(run, 0, cpu_of_first);
  std::thread second(run, 1, cpu_of_second);
  first.join();
  second.join();
  return {.polls = counts[0].polls + counts[1].polls, .preempted = counts[0].preempted + counts[1].preempted};
}

SwitchCount count_switches_under_contention(pv::VcpuStateBackend& backend, int yields) {
  std::atomic<int> started = 0;
  std::atomic<bool> stop = false;
  std::thread rival([&] {
    pin_to_cpu(0);
    ++started;
    while (!stop) {
      sched_yield();
    }
  });
  SwitchCount count;
  std::thread counted([&] {
    pin_to_cpu(0);
    const AttachedVcpu attached(backend, 0);
    spin_until(started, 1);
    backend.activate(0);
    const uint64_t before = involuntary_switches();
    const uint64_t record_before = read_record(backend, 0).preempt_count;
    for (int i = 0; i < yields; ++i) {
      sched_yield();
    }
    count.by_backend = read_record(backend, 0).preempt_count - record_before;
    count.by_kernel = involuntary_switches() - before;
    backend.deactivate(0);
  });
  counted.join();
  stop = true;
  rival.join();
  return count;
}

bool agree(const SwitchCount& count) {
  const uint64_t larger = std::max(count.by_kernel, count.by_backend);
  const uint64_t smaller = std::min(count.by_kernel, count.by_backend);
  return (larger - smaller) * 100 <= larger;
}

}  // namespace tandem::tests
