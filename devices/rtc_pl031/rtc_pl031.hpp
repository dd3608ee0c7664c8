// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "devices/backend/loop_timer.hpp"
#include "devices/bus/fdt_node.hpp"
#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "devices/bus/primecell.hpp"
#include "vmm/lib/clock/clock.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

/// PL031 real-time clock. Spec: Arm DDI 0224, "Programmers Model".
///
/// The clock is the host's wall clock plus an offset, which the guest sets by RTCLR. It follows the host's clock when that
/// is set, and goes on while the machine is paused, saved or moved: an alarm that was due meanwhile is given on resume.
///
/// Departures: the clock is running after reset (RTCCR reads 1), and shows the host's time. A value written to RTCLR shows
/// at once. No test registers.
class RtcPl031 final : public MmioHandler, public Component {
 public:
  static constexpr uint64_t kWindowBytes = kPrimeCellWindowBytes;

  /// @param alarm  a timer on the wall clock, as LoopTimer::Base::kRealtime.
  /// @pre  `clock` outlives the device.
  RtcPl031(std::string name, IrqLine irq, const Clock& clock, std::unique_ptr<Timer> alarm);

  MmioRead read(MmioAccess access) override;
  MmioWrite write(MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  /// Sets the guest's clock back to the time at which it was paused, from where it goes on.
  /// @pre paused.
  void go_on_from_pause() { state_.offset_s += state_.checked_s - now_s(); }

  /// The node "rtc@…". (Linux binding "arm,pl031")
  [[nodiscard]] FdtNode describe(const FdtPlacement& placement) const;

 private:
  struct State {
    uint32_t rtcmr = 0;
    uint32_t rtclr = 0;
    bool interrupt_enabled = false;
    bool interrupt_pending = false;
    uint32_t offset_s = 0;
    uint32_t checked_s = 0;
  };

  [[nodiscard]] uint32_t now_s() const;
  void find_match();
  void look_from_now();
  void arm_alarm();
  [[nodiscard]] bool irq_level() const { return state_.interrupt_pending && state_.interrupt_enabled; }
  void update_irq() { irq_.set_level(irq_level()); }

  // Fixed configuration
  const std::string name_;

  // Connections
  IrqLine irq_;
  const Clock& clock_;
  std::unique_ptr<Timer> alarm_;

  bool paused_ = false;

  // Guest-visible state
  State state_;
};

}  // namespace tandem::devices
