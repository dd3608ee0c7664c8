// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace tandem::devices {

/// An interrupt's architectural number (GICv3 IHI 0069, "INTIDs"); never a raw KVM GSI.
class Intid {
 public:
  static constexpr uint32_t kFirstPpi = 16;
  static constexpr uint32_t kFirstSpi = 32;
  static constexpr Intid spi(uint32_t number) { return Intid(kFirstSpi + number); }
  static constexpr Intid ppi(uint32_t number) { return Intid(kFirstPpi + number); }

  [[nodiscard]] constexpr uint32_t value() const { return value_; }
  constexpr auto operator<=>(const Intid&) const = default;

 private:
  constexpr explicit Intid(uint32_t value) : value_(value) {}
  uint32_t value_;
};

/// The interrupt controller as devices need it. A leaf: it calls nothing back, and may be called under any device's lock.
/// @thread  any.
class IrqSink {
 public:
  virtual ~IrqSink() = default;
  virtual void set_level(Intid intid, bool high) = 0;
  /// One rising edge.
  virtual void pulse(Intid intid) = 0;
  /// What the wire's level is after a restore. Where the controller's own state has it already, nothing happens; a GICv2's does
  /// not.
  virtual void restore_level(Intid intid, bool high) = 0;
};

/// One interrupt wire of one device; hides number and controller.
class IrqLine {
 public:
  /// @pre `sink` outlives the line.
  IrqLine(IrqSink& sink, Intid intid) : sink_(&sink), intid_(intid) {}
  /// A wire that leads nowhere.
  static IrqLine detached() { return {}; }

  /// For level-triggered interrupts. Tells the controller only of changes.
  void set_level(bool high) {
    if (high != level_) {
      level_ = high;
      if (sink_ != nullptr) {
        sink_->set_level(intid_, high);
      }
    }
  }
  /// For edge-triggered interrupts.
  void pulse() {
    if (sink_ != nullptr) {
      sink_->pulse(intid_);
    }
  }
  /// Takes over the level of restored state without an edge: the controller's own state is restored before.
  void restore_level(bool high) {
    level_ = high;
    if (sink_ != nullptr) {
      sink_->restore_level(intid_, high);
    }
  }

 private:
  IrqLine() = default;
  IrqSink* sink_ = nullptr;
  Intid intid_ = Intid::spi(0);
  bool level_ = false;
};

}  // namespace tandem::devices
