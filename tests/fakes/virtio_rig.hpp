// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/bus/device_executor.hpp"
#include "devices/virtio_queue/virtio_device.hpp"
#include "tests/fakes/fake_ram.hpp"
#include "tests/fakes/guest_queue.hpp"
#include "vmm/lib/event_loop/event_loop.hpp"

namespace tandem::devices {

/// Keeps what a device tells its transport.
class FakeTransport final : public VirtioTransport {
 public:
  void notify_used(uint16_t queue) override { used_.push_back(queue); }
  void notify_config() override { ++config_count_; }
  void set_needs_reset(std::string_view why) override { needs_reset_ = why; }

  /// How often the driver was interrupted for `queue`.
  [[nodiscard]] size_t used_count(uint16_t queue) const {
    return static_cast<size_t>(std::ranges::count(used_, queue));
  }
  [[nodiscard]] size_t config_count() const { return config_count_; }
  /// Why the device wants to be reset, if it does.
  [[nodiscard]] const std::optional<std::string>& needs_reset() const { return needs_reset_; }
  void clear() { *this = {}; }

 private:
  std::vector<uint16_t> used_;
  size_t config_count_ = 0;
  std::optional<std::string> needs_reset_;
};

/// The driver's side of a virtio device without a transport: RAM, queues, and the event loop that the device works on.
class VirtioRig {
 public:
  /// Short rings: what a test has to fill or to overflow.
  static constexpr uint16_t kQueueSize = 16;

  explicit VirtioRig(uint64_t ram_bytes = 4U << 20) : ram_(ram_bytes) {}

  [[nodiscard]] DeviceExecutor& executor() { return executor_; }
  [[nodiscard]] FakeRam& ram() { return ram_; }
  [[nodiscard]] FakeTransport& transport() { return transport_; }
  [[nodiscard]] EventLoop& loop() { return *loop_; }

  /// Sets the device up as a driver does that agreed on `features`: its queues but those of `left_out`.
  void activate(VirtioDevice& device, uint64_t features, std::vector<uint16_t> left_out = {}) {
    device_queues_.clear();
    drivers_.clear();
    for (const uint16_t max_size : device.queue_sizes()) {
      const auto index = static_cast<uint16_t>(drivers_.size());
      SplitQueue queue(ram_.memory(), max_size);
      drivers_.emplace_back(ram_, std::min(kQueueSize, max_size));
      if (std::ranges::find(left_out, index) == left_out.end() && !queue.configure(drivers_.back().state(), features)) {
        std::abort();  // the rig's own rings are in order
      }
      device_queues_.push_back(std::move(queue));
    }
    features_ = features;
    attach(device);
  }

  /// Takes the device away from its driver and gives it a restored machine's: same queues, same progress.
  void reattach(VirtioDevice& device) {
    for (SplitQueue& queue : device_queues_) {
      if (!queue.configure(SplitQueue::State(queue.state()), features_)) {
        std::abort();  // it was configured like that before
      }
    }
    attach(device);
  }

  /// Resets device and queues as the driver's write of 0 to the status register does.
  void reset(VirtioDevice& device) {
    if (!device.reset()) {
      std::abort();  // devices of tests have nothing that can fail
    }
    for (SplitQueue& queue : device_queues_) {
      queue.reset();
    }
    transport_.clear();
  }

  /// The driver's end of queue `index`. @pre activated.
  [[nodiscard]] GuestQueue& driver(uint16_t index) { return drivers_.at(index); }
  /// The device's end of queue `index`. @pre activated.
  [[nodiscard]] SplitQueue& queue(uint16_t index) { return device_queues_.at(index); }

  /// Makes the next buffer of queue `index` one that breaks the ring: a head outside the table.
  void break_ring(uint16_t index) { drivers_.at(index).offer(UINT16_MAX); }

  /// Ends a pause as a transport does.
  void resume(VirtioDevice& device) {
    if (!device.resume()) {
      std::abort();  // devices of tests have nothing that can fail
    }
    notify_all(device);
  }

  /// Runs the device's asynchronous work until there is none.
  void run() {
    while (loop_->run_ready() != 0) {
    }
  }

 private:
  void attach(VirtioDevice& device) {
    device.activate(
        {.features = features_, .memory = ram_.memory(), .queues = device_queues_, .transport = transport_});
    notify_all(device);
  }
  void notify_all(VirtioDevice& device) {
    for (uint16_t index = 0; index < device_queues_.size(); ++index) {
      if (device_queues_.at(index).is_ready() && !transport_.needs_reset()) {
        device.notify(index);
      }
    }
  }

  FakeRam ram_;
  FakeTransport transport_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();  // a test that gets no epoll cannot go on
  DeviceExecutor executor_{*loop_};
  std::vector<SplitQueue> device_queues_;
  std::deque<GuestQueue> drivers_;
  uint64_t features_ = 0;
};

}  // namespace tandem::devices
