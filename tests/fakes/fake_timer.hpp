// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "devices/backend/loop_timer.hpp"

namespace tandem::devices {

/// A timer that fires when the test says so.
class FakeTimer final : public Timer {
 public:
  void set_callback(std::function<void()> fire) override { fire_ = std::move(fire); }
  void arm_after_ns(uint64_t delay_ns) override {
    disarm();
    delay_ns_ = delay_ns;
  }
  void arm_at_ns(int64_t deadline_ns) override {
    disarm();
    deadline_ns_ = deadline_ns;
  }
  void disarm() override {
    delay_ns_.reset();
    deadline_ns_.reset();
  }

  void fire() {
    disarm();
    fire_();
  }
  [[nodiscard]] bool is_armed() const { return delay_ns_ || deadline_ns_; }
  [[nodiscard]] std::optional<uint64_t> delay_ns() const { return delay_ns_; }
  [[nodiscard]] std::optional<int64_t> deadline_ns() const { return deadline_ns_; }

 private:
  std::function<void()> fire_;
  std::optional<uint64_t> delay_ns_;
  std::optional<int64_t> deadline_ns_;
};

}  // namespace tandem::devices
