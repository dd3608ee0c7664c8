// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "vmm/lib/result/result.hpp"
#include "vmm/vcpu/exit_dispatcher.hpp"
#include "vmm/vcpu/vcpu.hpp"

namespace tandem {

/// Is told on each vCPU's thread, by its index, of the thread's life.
class VcpuThreadListener {
 public:
  virtual ~VcpuThreadListener() = default;
  /// The thread has started and has not entered the guest. @errors  end the thread; `on_thread_end` does not follow.
  virtual Result<void> on_thread_start(unsigned vcpu) = 0;
  /// The thread does not enter the guest again, and ends.
  virtual void on_thread_end(unsigned vcpu) = 0;
};

/// Owns the thread of one vCPU, named "vcpu<N>": enters the guest, has its exits answered, parks on request.
///
/// A request cannot be lost: it is written under `mutex_` together with the vCPU's immediate-exit flag, and the thread
/// clears that flag only under `mutex_` after it has read the request; the signal that follows ends a run already begun.
class VcpuThread {
 public:
  /// Starts the thread, parked.
  /// @pre     all three outlive it.
  /// @errors  of the host, and of the listener.
  static Result<std::unique_ptr<VcpuThread>> create(Vcpu& vcpu, ExitDispatcher& dispatcher,
                                                    VcpuThreadListener& listener);
  VcpuThread(const VcpuThread&) = delete;
  VcpuThread& operator=(const VcpuThread&) = delete;
  /// Stops and joins the thread.
  ~VcpuThread();

  /// Asks the thread to park; returns at once. @thread any.
  void request_park();
  /// Waits until the thread is parked, with no MMIO access half done. @pre request_park came last.
  void wait_parked();
  /// Lets a parked thread enter the guest.
  void unpark();

  /// Keeps the thread from entering the guest until `unblock`, whether it is parked meanwhile or not. Nobody is told when the
  /// guest has been left: to stop the guest, park the thread. @thread any.
  void block();
  void unblock();

  /// The kernel's id of the thread, for pinning it.
  [[nodiscard]] pid_t thread_id() const { return thread_id_; }

 private:
  enum class Request : uint8_t { kPark, kRun, kStop };
  VcpuThread(Vcpu& vcpu, ExitDispatcher& dispatcher, VcpuThreadListener& listener)
      : vcpu_(vcpu), dispatcher_(dispatcher), listener_(listener) {}
  void post(Request request);
  void leave_guest();
  void main();
  /// Tells the listener of the start, and the creator how that went.
  bool begin();
  Result<void> wait_started();
  /// Waits until there is something to do. @return false when the thread is to end.
  bool wait_to_run();
  void park_self();

  Vcpu& vcpu_;
  ExitDispatcher& dispatcher_;
  VcpuThreadListener& listener_;
  pid_t thread_id_ = 0;

  std::mutex
      mutex_;  // guards started_, request_, blocked_, parked_, and the order of changes to the immediate-exit flag
  std::condition_variable changed_;
  std::optional<Result<void>> started_;  // once the listener knows of the thread
  Request request_ = Request::kPark;
  bool blocked_ = false;
  bool parked_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
