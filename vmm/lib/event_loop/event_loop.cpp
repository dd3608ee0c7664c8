// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/event_loop/event_loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

namespace tandem {

struct EventLoop::Watch::Entry {
  EventLoop& loop;
  int fd;
  Callback callback;
  std::mutex mutex = {};  // guards removed, armed and the descriptor's place in the epoll set
  bool removed = false;
  bool armed = false;

  // A disarmed descriptor leaves the epoll set: epoll reports hang-up and error of any member, wanted or not.
  void set_events(Events events) {
    const std::lock_guard lock(mutex);
    if (removed) {
      return;
    }
    epoll_event event{};
    event.events = (has(events, Events::kReadable) ? EPOLLIN : 0U) | (has(events, Events::kWritable) ? EPOLLOUT : 0U);
    event.data.ptr = this;
    const bool arm = events != Events::kNone;
    if (arm || armed) {
      const int operation = !arm ? EPOLL_CTL_DEL : armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
      ::epoll_ctl(loop.epoll_.get(), operation, fd, &event);
      armed = arm;
    }
  }

  void remove() {
    set_events(Events::kNone);
    {
      const std::lock_guard lock(mutex);
      removed = true;
    }
    const std::lock_guard lock(loop.mutex_);
    std::erase_if(loop.entries_, [this](const auto& entry) { return entry.get() == this; });
  }

  bool is_removed() {
    const std::lock_guard lock(mutex);
    return removed;
  }
};

EventLoop::Watch::Watch(Watch&& other) noexcept = default;

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    remove();
    entry_ = std::move(other.entry_);
  }
  return *this;
}

EventLoop::Watch::~Watch() { remove(); }

void EventLoop::Watch::remove() {
  if (entry_) {
    entry_->remove();
    entry_.reset();
  }
}

void EventLoop::Watch::set_events(Events events) {
  if (entry_) {
    entry_->set_events(events);
  }
}

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    return fail_errno("epoll_create1");
  }
  UniqueFd wake = TANDEM_TRY(create_eventfd());
  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(wake)));
  loop->wake_watch_ = TANDEM_TRY(
      loop->watch(loop->wake_.get(), Events::kReadable, [fd = loop->wake_.get()](Events) { drain_eventfd(fd); }));
  return loop;
}

EventLoop::~EventLoop() = default;

Result<EventLoop::Watch> EventLoop::watch(int fd, Events events, Callback callback) {
  auto entry = std::make_shared<Watch::Entry>(*this, fd, std::move(callback));
  // Tried at once, so that a descriptor that cannot be watched is refused here and not in set_events().
  epoll_event event{};
  event.data.ptr = entry.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return fail_errno("watch descriptor {}", fd);
  }
  entry->armed = true;
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  entry->set_events(events);
  return Watch(std::move(entry));
}

void EventLoop::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  signal_eventfd(wake_.get());
}

void EventLoop::run() {
  while (!stopping_.exchange(false)) {
    dispatch(-1);
  }
}

size_t EventLoop::run_ready() { return dispatch(0); }

void EventLoop::stop() {
  stopping_ = true;
  signal_eventfd(wake_.get());
}

size_t EventLoop::dispatch(int timeout_ms) {
  std::array<epoll_event, 32> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  // A callback may remove other entries of this batch: hold them all first.
  std::vector<std::pair<std::shared_ptr<Watch::Entry>, Events>> ready;
  {
    const std::lock_guard lock(mutex_);
    for (int index = 0; index < count; ++index) {
      const epoll_event& event = events.at(static_cast<size_t>(index));
      const auto it = std::ranges::find(entries_, static_cast<Watch::Entry*>(event.data.ptr),
                                        [](const auto& entry) { return entry.get(); });
      const unsigned readable = (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 ? 1 : 0;
      const unsigned writable = (event.events & (EPOLLOUT | EPOLLERR)) != 0 ? 2 : 0;
      if (it != entries_.end()) {
        ready.emplace_back(*it, static_cast<Events>(readable | writable));
      }
    }
  }
  size_t calls = 0;
  for (const auto& [entry, which] : ready) {
    if (!entry->is_removed()) {
      entry->callback(which);
      calls += entry->fd != wake_.get() ? 1 : 0;
    }
  }
  return calls + run_tasks();
}

size_t EventLoop::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) {
    task();
  }
  return tasks.size();
}

}  // namespace tandem
