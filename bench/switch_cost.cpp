// SPDX-License-Identifier: Apache-2.0
// usage: switch_cost SWITCHES VMS…
//
// For each number of VMs, which only grow, prints what context switches between two threads of one CPU cost with the BPF back
// ends of so many VMs on the host, in nanoseconds:
//   `switch unrelated VMS COUNT NS`   the two are no vCPUs
//   `switch vcpu VMS COUNT NS`        the two are active vCPUs of the first VM; not with 0 VMs
// The other VMs are processes with one active vCPU that sleeps.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pv/host/bpf_vcpu_state.hpp"

namespace {

using tandem::pv::BpfVcpuState;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "switch_cost: %s\n", why.c_str());
  std::exit(1);
}

std::unique_ptr<BpfVcpuState> create_back_end() {
  auto backend = BpfVcpuState::create();
  if (!backend) {
    give_up(backend.error().message());
  }
  return *std::move(backend);
}

void become_vcpu(BpfVcpuState& backend, unsigned vcpu) {
  if (const auto attached = backend.attach_thread(vcpu); !attached) {
    give_up(attached.error().message());
  }
  backend.activate(vcpu);
}

/// Another VM: a process with one sleeping vCPU, which ends with this one. Returns when it is there.
void start_idle_vm() {
  int ends[2];
  if (pipe(ends) != 0) {
    give_up("no pipe");
  }
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto backend = create_back_end();
    become_vcpu(*backend, 0);
    if (write(ends[1], "!", 1) != 1) {
      std::_Exit(1);
    }
    while (true) {
      pause();
    }
  }
  close(ends[1]);
  char byte = 0;
  if (read(ends[0], &byte, 1) != 1) {
    give_up("a VM could not be started");
  }
  close(ends[0]);
}

/// With equal real-time priorities each sched_yield is a switch to the other thread.
void take_turns_on_this_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  const sched_param priority{.sched_priority = 1};
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0 || sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    give_up("cannot set priority and CPU of a thread");
  }
}

uint64_t switches_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

struct Measured {
  uint64_t switches;
  int64_t time_ns;
};

/// Lets two threads take turns; `prepare` is run by each first, with its number.
Measured measure(uint64_t switches, const std::function<void(unsigned)>& prepare) {
  std::atomic<int> ready = 0;
  std::atomic<bool> stop = false;
  Measured measured{};
  const auto begin = [&](unsigned number) {
    take_turns_on_this_cpu();
    prepare(number);
    for (++ready; ready < 2;) {
      sched_yield();
    }
  };
  std::thread rival([&] {
    begin(1);
    while (!stop) {
      sched_yield();
    }
  });
  std::thread([&] {
    begin(0);
    const uint64_t before = switches_of_this_thread();
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < switches / 2; ++i) {
      sched_yield();
    }
    measured.time_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
    measured.switches = (switches_of_this_thread() - before) * 2;
    stop = true;
  }).join();
  rival.join();
  return measured;
}

/// A machine that has just booted has work left which shows in every switch. Waits until that is over.
void settle(uint64_t switches) {
  constexpr int kAttempts = 50;
  int64_t before = measure(switches, [](unsigned) {}).time_ns;
  for (int equal = 0, attempt = 0; equal < 3 && attempt < kAttempts; ++attempt) {
    const int64_t now = measure(switches, [](unsigned) {}).time_ns;
    equal = std::abs(now - before) * 100 <= now ? equal + 1 : 0;
    before = std::min(now, before);
  }
}

void print(const char* what, unsigned long vms, const Measured& measured) {
  std::printf("switch %s %lu %lu %ld\n", what, vms, measured.switches, measured.time_ns);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: switch_cost SWITCHES VMS…\n", stderr);
    return 2;
  }
  const uint64_t switches = std::strtoull(argv[1], nullptr, 10);
  settle(switches);
  std::unique_ptr<BpfVcpuState> first;
  unsigned long running = 0;
  for (int i = 2; i < argc; ++i) {
    for (const unsigned long wanted = std::strtoul(argv[i], nullptr, 10); running < wanted; ++running) {
      if (running == 0) {
        first = create_back_end();
      } else {
        start_idle_vm();
      }
    }
    print("unrelated", running, measure(switches, [](unsigned) {}));
    if (first) {
      print("vcpu", running, measure(switches, [&first](unsigned vcpu) { become_vcpu(*first, vcpu); }));
    }
  }
  return 0;
}
