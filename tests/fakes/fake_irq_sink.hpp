// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "devices/bus/irq_line.hpp"

namespace tandem::devices {

/// An interrupt controller that remembers what each wire did.
class FakeIrqSink final : public IrqSink {
 public:
  void set_level(Intid intid, bool high) override {
    const std::lock_guard lock(mutex_);
    Wire& wire = wires_[intid];
    wire.edge_count += high && !wire.level ? 1 : 0;
    wire.level = high;
    ++call_count_;
  }
  void pulse(Intid intid) override {
    const std::lock_guard lock(mutex_);
    ++wires_[intid].edge_count;
    ++call_count_;
  }
  void restore_level(Intid intid, bool high) override {
    const std::lock_guard lock(mutex_);
    wires_[intid].level = high;
  }

  /// Level that the wire was last given.
  [[nodiscard]] bool level(Intid intid) const {
    const std::lock_guard lock(mutex_);
    const auto it = wires_.find(intid);
    return it != wires_.end() && it->second.level;
  }
  /// Rising edges and pulses of the wire so far.
  [[nodiscard]] uint64_t edge_count(Intid intid) const {
    const std::lock_guard lock(mutex_);
    const auto it = wires_.find(intid);
    return it == wires_.end() ? 0 : it->second.edge_count;
  }
  /// How often any wire was touched, levels that did not change included.
  [[nodiscard]] uint64_t call_count() const {
    const std::lock_guard lock(mutex_);
    return call_count_;
  }

 private:
  struct Wire {
    bool level = false;
    uint64_t edge_count = 0;
  };
  mutable std::mutex mutex_;  // guards all below
  std::map<Intid, Wire> wires_;
  uint64_t call_count_ = 0;
};

}  // namespace tandem::devices
