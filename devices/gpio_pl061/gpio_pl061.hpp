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
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

/// PL061 general-purpose I/O, with a power key on pin 3. Spec: Arm DDI 0190B, "Programmers Model".
///
/// Departures: mode control is only stored, as no hardware drives the pins; the other pins are inputs that stay low. No
/// test registers.
class GpioPl061 final : public MmioHandler, public Component {
 public:
  static constexpr uint64_t kWindowBytes = kPrimeCellWindowBytes;
  static constexpr unsigned kPowerKeyPin = 3;

  /// @param release  a timer that lets the power key go; its clock does not matter.
  GpioPl061(std::string name, IrqLine irq, std::unique_ptr<Timer> release);

  MmioRead read(MmioAccess access) override;
  MmioWrite write(MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  /// Presses the power key, and lets it go a little later. @pre the device's mutex is held.
  void press_power_key();

  /// The node "gpio@…", with `phandle`. (Linux binding "arm,pl061")
  [[nodiscard]] FdtNode describe(const FdtPlacement& placement, uint32_t phandle) const;
  /// The node "gpio-keys" of the power key at the controller `phandle`. (Linux binding "gpio-keys")
  [[nodiscard]] static FdtNode describe_power_key(uint32_t phandle);

 private:
  struct State {
    uint8_t inputs = 0;
    uint8_t gpiodata = 0;
    uint8_t gpiodir = 0;
    uint8_t gpiois = 0;
    uint8_t gpioibe = 0;
    uint8_t gpioiev = 0;
    uint8_t gpioie = 0;
    uint8_t edges = 0;
    uint8_t gpioafsel = 0;
  };

  void set_power_key(bool down);
  void note_edges(uint8_t pins_before);
  [[nodiscard]] bool is_power_key_down() const;
  [[nodiscard]] uint8_t pins() const;
  [[nodiscard]] uint8_t raw_status() const;
  [[nodiscard]] bool irq_level() const { return (raw_status() & state_.gpioie) != 0; }
  void update_irq() { irq_.set_level(irq_level()); }

  // Fixed configuration
  const std::string name_;

  // Connections
  IrqLine irq_;
  std::unique_ptr<Timer> release_;  // armed while the key is down and the device is not paused

  bool paused_ = false;

  // Guest-visible state
  State state_;
};

}  // namespace tandem::devices
