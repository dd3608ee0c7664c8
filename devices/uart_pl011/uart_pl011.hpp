// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/bus/fdt_node.hpp"
#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "devices/bus/primecell.hpp"
#include "devices/uart_pl011/uart_pl011_regs.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

/// PL011 UART. Spec: Arm DDI 0183G, "Programmers Model".
///
/// Departures, each because no wire is behind it:
/// - A character is sent as soon as it is written: TXFF and BUSY are never set, and TXE is set after every write. Nor
///   does sending wait for UARTEN and TXE, which firmware would have set before an early console is used.
/// - Characters have 8 bits and no errors; baud rate and word length are only stored. The receive timeout passes at
/// once.
/// - Input is held back in the backend while the receive FIFO is full or the receiver is off, so there is no overrun
/// but
///   in loopback.
/// - Modem inputs are always asserted, or follow the outputs in loopback, and raise no interrupt. No DMA, no IrDA, no
///   test registers, no break.
/// - Disabling the FIFOs keeps their contents.
class UartPl011 final : public MmioHandler, public Component, private CharSink {
 public:
  static constexpr uint64_t kWindowBytes = kPrimeCellWindowBytes;

  /// @pre  `backend` outlives the device, and serves no other; the device's mutex is held or nothing runs yet.
  UartPl011(std::string name, IrqLine irq, CharBackend& backend);
  UartPl011(const UartPl011&) = delete;
  UartPl011& operator=(const UartPl011&) = delete;
  ~UartPl011() override;

  MmioRead read(MmioAccess access) override;
  MmioWrite write(MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override;
  Result<void> pause() override;
  Result<void> resume() override;
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  /// The node "serial@…". (Linux binding "arm,pl011")
  [[nodiscard]] FdtNode describe(const FdtPlacement& placement) const;

 private:
  struct State {
    uint8_t uartrsr = 0;
    uint16_t uartilpr = 0;
    uint16_t uartibrd = 0;
    uint16_t uartfbrd = 0;
    uint16_t uartlcr_h = 0;
    uint16_t uartcr = pl011::kUARTCR_Reset;
    uint16_t uartifls = pl011::kUARTIFLS_Reset;
    uint16_t uartimsc = 0;
    uint16_t uartris = 0;
    uint16_t uartdmacr = 0;
    std::array<uint8_t, pl011::kFifoDepth> fifo{};  // a ring of fifo_count characters from fifo_head on
    uint8_t fifo_head = 0;
    uint8_t fifo_count = 0;
  };

  [[nodiscard]] size_t room() const override;
  void receive(std::span<const std::byte> bytes) override;

  uint16_t read_data();
  void write_data(uint8_t character);
  void push(uint8_t character);
  [[nodiscard]] uint16_t flags() const;
  [[nodiscard]] unsigned fifo_depth() const;
  [[nodiscard]] unsigned receive_trigger() const;
  [[nodiscard]] bool can_receive() const;
  [[nodiscard]] bool irq_level() const { return (state_.uartris & state_.uartimsc) != 0; }
  void update_irq() { irq_.set_level(irq_level()); }

  // Fixed configuration
  const std::string name_;

  // Connections
  IrqLine irq_;
  CharBackend& backend_;

  bool paused_ = false;

  // Guest-visible state
  State state_;
};

}  // namespace tandem::devices
