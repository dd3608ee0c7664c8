// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "vmm/vcpu/vcpu_thread.hpp"

namespace tandem {

/// Slows a guest down: keeps all vCPUs from running for a share of each tenth of a second. They may be parked and
/// unparked by others meanwhile.
class VcpuThrottle {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};

  /// @pre  the threads outlive it.
  /// @errors  of the host.
  static Result<std::unique_ptr<VcpuThrottle>> create(std::vector<VcpuThread*> threads);
  VcpuThrottle(const VcpuThrottle&) = delete;
  VcpuThrottle& operator=(const VcpuThrottle&) = delete;
  /// Lets the vCPUs run.
  ~VcpuThrottle();

  /// From the next period on. @pre percent < 100. @thread any.
  void set_percent(unsigned percent);

 private:
  explicit VcpuThrottle(std::vector<VcpuThread*> threads) : threads_(std::move(threads)) {}
  void main();
  /// @return  false when the thread is to end.
  bool wait(std::chrono::milliseconds duration);

  const std::vector<VcpuThread*> threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  unsigned percent_ = 0;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
