// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/vcpu_throttle.hpp"

#include "vmm/lib/thread/start_thread.hpp"

namespace tandem {

Result<std::unique_ptr<VcpuThrottle>> VcpuThrottle::create(std::vector<VcpuThread*> threads) {
  std::unique_ptr<VcpuThrottle> made(new VcpuThrottle(std::move(threads)));
  made->thread_ = TANDEM_TRY(start_thread("throttle", [self = made.get()] { self->main(); }));
  return made;
}

VcpuThrottle::~VcpuThrottle() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  for (VcpuThread* const vcpu : threads_) {
    vcpu->unblock();
  }
}

void VcpuThrottle::set_percent(unsigned percent) {
  TANDEM_ASSERT(percent < 100, "a guest that never runs is a paused one");
  const std::lock_guard lock(mutex_);
  percent_ = percent;
  changed_.notify_all();
}

void VcpuThrottle::main() {
  while (true) {
    unsigned percent = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return percent_ != 0 || ending_; });
      percent = percent_;
    }
    for (VcpuThread* const vcpu : threads_) {
      vcpu->block();
    }
    const bool goes_on = wait(kPeriod * percent / 100);
    for (VcpuThread* const vcpu : threads_) {
      vcpu->unblock();
    }
    if (!goes_on || !wait(kPeriod * (100 - percent) / 100)) {
      return;
    }
  }
}

bool VcpuThrottle::wait(std::chrono::milliseconds duration) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, duration, [this] { return ending_; });
}

}  // namespace tandem
