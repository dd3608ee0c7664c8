// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "pv/host/bpf_vcpu_state.hpp"

namespace tandem::tests {

/// A vCPU's record as a guest reads it.
struct RecordView {
  uint32_t preempted;
  uint64_t preempt_count;
};
RecordView read_record(pv::VcpuStateBackend& backend, unsigned vcpu);

/// True if each byte of the vCPU's record is 0.
bool is_record_zero(pv::VcpuStateBackend& backend, unsigned vcpu);

/// Binds the calling thread to one CPU.
void pin_to_cpu(unsigned cpu);

/// A number of the calling thread's /proc status: `nonvoluntary_ctxt_switches`.
uint64_t involuntary_switches();

/// Waits, running, until `count` is `wanted`.
void spin_until(const std::atomic<int>& count, int wanted);

/// Makes the calling thread a vCPU's for the scope's length.
class AttachedVcpu {
 public:
  AttachedVcpu(pv::VcpuStateBackend& backend, unsigned vcpu);
  ~AttachedVcpu();
  AttachedVcpu(const AttachedVcpu&) = delete;
  AttachedVcpu& operator=(const AttachedVcpu&) = delete;

 private:
  pv::VcpuStateBackend& backend_;
  unsigned vcpu_;
};

/// How often the running one of two vCPUs read "preempted" for the other.
struct PollCount {
  uint64_t polls = 0;
  uint64_t preempted = 0;
};

/// Two active vCPUs on the CPUs given each look at the other's record `polls` times, while both spin.
PollCount poll_each_other(pv::VcpuStateBackend& backend, unsigned cpu_of_first, unsigned cpu_of_second, uint64_t polls);

/// What the kernel and the back end counted for one thread.
struct SwitchCount {
  uint64_t by_kernel = 0;
  uint64_t by_backend = 0;
};

/// One active vCPU gives its CPU away `yields` times to another that does the same.
SwitchCount count_switches_under_contention(pv::VcpuStateBackend& backend, int yields);

/// True if the two counts differ by 1 % at most.
bool agree(const SwitchCount& count);

}  // namespace tandem::tests
