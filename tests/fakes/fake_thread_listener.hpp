// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <optional>

#include "vmm/vcpu/vcpu_thread.hpp"

namespace tandem {

/// Notes on which threads it was told of their start and end. Read it when the thread is parked or joined.
class FakeThreadListener final : public VcpuThreadListener {
 public:
  Result<void> on_thread_start(unsigned vcpu) override {
    started_vcpu = vcpu;
    start_thread = ::gettid();
    return start_result;
  }
  void on_thread_end(unsigned vcpu) override {
    ended_vcpu = vcpu;
    end_thread = ::gettid();
  }

  Result<void> start_result;
  std::optional<unsigned> started_vcpu;
  std::optional<unsigned> ended_vcpu;
  pid_t start_thread = 0;
  pid_t end_thread = 0;
};

}  // namespace tandem
