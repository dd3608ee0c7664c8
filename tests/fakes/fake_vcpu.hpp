// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "vmm/vcpu/vcpu.hpp"

namespace tandem {

/// A vCPU whose exits are scripted. With no exit left it "runs" until it is asked for an immediate exit.
class FakeVcpu final : public Vcpu {
 public:
  void script(VmExit exit) {
    const std::lock_guard lock(mutex_);
    exits_.push_back(std::move(exit));
    changed_.notify_all();
  }
  /// Waits until the vCPU has entered the guest `count` times.
  void wait_for_runs(unsigned count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return runs_ >= count; });
  }
  [[nodiscard]] unsigned runs() {
    const std::lock_guard lock(mutex_);
    return runs_;
  }

  [[nodiscard]] unsigned index() const override { return 3; }
  VmExit run() override {
    std::unique_lock lock(mutex_);
    ++runs_;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked_signals);
    changed_.notify_all();
    changed_.wait(lock, [this] { return immediate_exit_ || !exits_.empty(); });
    if (immediate_exit_) {
      return InterruptedExit{};
    }
    VmExit exit = std::move(exits_.front());
    exits_.pop_front();
    return exit;
  }
  void complete_mmio_read(uint64_t value) override { read_value = value; }
  Result<void> complete_hypercall(uint64_t x0) override {
    hypercall_result = x0;
    return complete_result;
  }
  void finish_mmio() override { ++finished; }
  void set_immediate_exit(bool immediate) override {
    const std::lock_guard lock(mutex_);
    immediate_exit_ = immediate;
    changed_.notify_all();
  }
  Result<void> inject_external_abort() override {
    ++aborts;
    return abort_result;
  }

  std::optional<uint64_t> read_value;
  std::optional<uint64_t> hypercall_result;
  Result<void> complete_result;
  std::atomic<int> finished{0};
  int aborts = 0;
  Result<void> abort_result;
  sigset_t blocked_signals{};  ///< In the thread of the last run, while it ran.

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<VmExit> exits_;
  unsigned runs_ = 0;
  bool immediate_exit_ = false;
};

}  // namespace tandem
