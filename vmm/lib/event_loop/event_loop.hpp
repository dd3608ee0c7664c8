// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem {

/// Conditions of a descriptor that are waited for or have come; hang-up is reported as readable, an error as both.
enum class Events : uint8_t { kNone = 0, kReadable = 1, kWritable = 2, kBoth = 3 };
[[nodiscard]] constexpr bool has(Events set, Events one) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(one)) != 0;
}

/// Single-threaded epoll dispatcher for backends, doorbells, timers and control. Level-triggered.
class EventLoop {
 public:
  using Callback = std::function<void(Events)>;

  /// A registration; its end removes the descriptor from the loop. Destroy it on the loop's thread, or while the loop
  /// is not running. Afterwards the callback is not called any more.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept;
    Watch& operator=(Watch&& other) noexcept;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

    [[nodiscard]] explicit operator bool() const { return entry_ != nullptr; }
    /// Changes what is waited for; `kNone` disarms (also hang-up and error). @thread any.
    void set_events(Events events);

   private:
    friend class EventLoop;
    struct Entry;
    explicit Watch(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
    void remove();
    std::shared_ptr<Entry> entry_;
  };

  static Result<std::unique_ptr<EventLoop>> create();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  /// Calls `callback` on the loop's thread whenever `fd` is ready for one of `events`.
  /// @pre     `fd` stays open longer than the watch.
  /// @errors  Errc::kPermission (EPERM): regular files cannot be watched.
  /// @thread  any.
  Result<Watch> watch(int fd, Events events, Callback callback);

  /// Runs `task` once on the loop's thread, soon. Tasks posted after `stop` run in the next `run` or never.
  /// @thread  any.
  void post(std::function<void()> task);

  /// Dispatches until `stop`.
  void run();

  /// Dispatches what is ready now, and returns; for tests and for draining. @return number of callbacks and tasks run.
  size_t run_ready();

  /// Makes `run` return after the callbacks that are ready now. @thread any.
  void stop();

 private:
  EventLoop(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  size_t dispatch(int timeout_ms);
  size_t run_tasks();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;  // guards tasks_, entries_
  std::vector<std::function<void()>> tasks_;
  std::vector<std::shared_ptr<Watch::Entry>> entries_;

  Watch wake_watch_;  // last: its end uses the members above
};

}  // namespace tandem
