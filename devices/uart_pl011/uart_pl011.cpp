// SPDX-License-Identifier: Apache-2.0
#include "devices/uart_pl011/uart_pl011.hpp"

#include <algorithm>
#include <utility>

#include "devices/uart_pl011/uart_pl011_state.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace pl011;

UartPl011::UartPl011(std::string name, IrqLine irq, CharBackend& backend)
    : name_(std::move(name)), irq_(irq), backend_(backend) {
  backend_.set_sink(this);
}

UartPl011::~UartPl011() { backend_.set_sink(nullptr); }

MmioRead UartPl011::read(MmioAccess access) {
  if (const auto ok = check_primecell_access(access); !ok) {
    return std::unexpected(ok.error());
  }
  switch (access.offset) {
    case UARTDR:
      return read_data();
    case UARTRSR:
      return state_.uartrsr;
    case UARTFR:
      return flags();
    case UARTILPR:
      return state_.uartilpr;
    case UARTIBRD:
      return state_.uartibrd;
    case UARTFBRD:
      return state_.uartfbrd;
    case UARTLCR_H:
      return state_.uartlcr_h;
    case UARTCR:
      return state_.uartcr;
    case UARTIFLS:
      return state_.uartifls;
    case UARTIMSC:
      return state_.uartimsc;
    case UARTRIS:
      return state_.uartris;
    case UARTMIS:
      return state_.uartris & state_.uartimsc;
    case UARTICR:
      return std::unexpected(BadAccess::kWriteOnly);
    case UARTDMACR:
      return state_.uartdmacr;
    default:
      break;
  }
  if (const auto id = primecell_id(kId, access.offset)) {
    return *id;
  }
  return std::unexpected(BadAccess::kNoRegister);
}

MmioWrite UartPl011::write(MmioAccess access, uint64_t value) {
  if (const auto ok = check_primecell_access(access); !ok) {
    return ok;
  }
  const auto low = static_cast<uint16_t>(value);
  switch (access.offset) {
    case UARTDR:
      write_data(static_cast<uint8_t>(value));
      break;
    case UARTRSR:  // UARTECR: any value clears
      state_.uartrsr = 0;
      break;
    case UARTILPR:
      state_.uartilpr = low & kUARTILPR_Mask;
      break;
    case UARTIBRD:
      state_.uartibrd = low & kUARTIBRD_Mask;
      break;
    case UARTFBRD:
      state_.uartfbrd = low & kUARTFBRD_Mask;
      break;
    case UARTLCR_H:
      state_.uartlcr_h = low & kUARTLCR_H_Mask;
      backend_.resume_input();  // the FIFO may have become deeper
      break;
    case UARTCR:
      state_.uartcr = low & kUARTCR_Mask;
      backend_.resume_input();  // the receiver may have been switched on
      break;
    case UARTIFLS:
      state_.uartifls = low & kUARTIFLS_Mask;
      break;
    case UARTIMSC:
      state_.uartimsc = low & kInterruptMask;
      break;
    case UARTICR:
      state_.uartris = static_cast<uint16_t>(state_.uartris & ~low);
      break;
    case UARTDMACR:
      state_.uartdmacr = low & kUARTDMACR_Mask;
      break;
    case UARTFR:
    case UARTRIS:
    case UARTMIS:
      return std::unexpected(BadAccess::kReadOnly);
    default:
      return std::unexpected(primecell_id(kId, access.offset) ? BadAccess::kReadOnly : BadAccess::kNoRegister);
  }
  update_irq();
  return {};
}

uint16_t UartPl011::flags() const {
  const State& s = state_;
  const auto when = [](bool condition, uint16_t flag) { return condition ? flag : uint16_t{0}; };
  unsigned flags = kFR_TXFE;
  flags |= when(s.fifo_count == 0, kFR_RXFE) | when(s.fifo_count >= fifo_depth(), kFR_RXFF);
  if ((s.uartcr & kCR_LBE) == 0) {
    return static_cast<uint16_t>(flags | kFR_CTS | kFR_DSR | kFR_DCD);
  }
  flags |= when((s.uartcr & kCR_RTS) != 0, kFR_CTS) | when((s.uartcr & kCR_DTR) != 0, kFR_DSR);
  flags |= when((s.uartcr & kCR_Out1) != 0, kFR_DCD) | when((s.uartcr & kCR_Out2) != 0, kFR_RI);
  return static_cast<uint16_t>(flags);
}

unsigned UartPl011::fifo_depth() const { return (state_.uartlcr_h & kLCR_H_FEN) != 0 ? kFifoDepth : 1; }

unsigned UartPl011::receive_trigger() const {
  if ((state_.uartlcr_h & kLCR_H_FEN) == 0) {
    return 1;
  }
  // 1/8, 1/4, 1/2, 3/4, 7/8; reserved selections act as the last.
  constexpr std::array<unsigned, 8> kTriggers{4, 8, 16, 24, 28, 28, 28, 28};
  return kTriggers.at(bit_field(state_.uartifls, kIFLS_RXIFLSEL_High, kIFLS_RXIFLSEL_Low));
}

bool UartPl011::can_receive() const {
  constexpr unsigned kOn = kCR_UARTEN | kCR_RXE;
  return (state_.uartcr & kOn) == kOn;
}

uint16_t UartPl011::read_data() {
  State& s = state_;
  if (s.fifo_count == 0) {
    return 0;
  }
  const uint8_t character = s.fifo.at(s.fifo_head);
  s.fifo_head = static_cast<uint8_t>((s.fifo_head + 1) % kFifoDepth);
  --s.fifo_count;
  if (s.fifo_count < receive_trigger()) {
    s.uartris = static_cast<uint16_t>(s.uartris & ~kInt_RX);
  }
  // What is left times out again: a driver that clears the interrupt and reads only some is told of the rest.
  s.uartris = static_cast<uint16_t>(s.fifo_count == 0 ? s.uartris & ~kInt_RT : s.uartris | kInt_RT);
  update_irq();
  if (s.fifo_count <= fifo_depth() / 2) {
    backend_.resume_input();
  }
  return static_cast<uint16_t>(character | (s.uartrsr << kUARTDR_ErrorShift));
}

void UartPl011::write_data(uint8_t character) {
  // The interrupt marks the transmit FIFO's passing through its trigger level, which it does at once.
  state_.uartris |= kInt_TX;
  if ((state_.uartcr & kCR_LBE) == 0) {
    backend_.write(std::as_bytes(std::span(&character, 1)));
  } else if (!can_receive()) {
    // Nobody is listening.
  } else if (state_.fifo_count < fifo_depth()) {
    push(character);
  } else {
    state_.uartrsr |= kRSR_OE;
    state_.uartris |= kInt_OE;
  }
}

void UartPl011::push(uint8_t character) {
  State& s = state_;
  s.fifo.at((s.fifo_head + s.fifo_count) % kFifoDepth) = character;
  ++s.fifo_count;
  s.uartris |= kInt_RT;
  if (s.fifo_count >= receive_trigger()) {
    s.uartris |= kInt_RX;
  }
}

size_t UartPl011::room() const {
  if (paused_ || !can_receive() || (state_.uartcr & kCR_LBE) != 0 || state_.fifo_count >= fifo_depth()) {
    return 0;
  }
  return fifo_depth() - state_.fifo_count;
}

void UartPl011::receive(std::span<const std::byte> bytes) {
  TANDEM_ASSERT(bytes.size() <= room(), "backends ask for room first");
  for (const std::byte byte : bytes) {
    push(std::to_integer<uint8_t>(byte));
  }
  update_irq();
}

Result<void> UartPl011::reset() {
  state_ = {};
  update_irq();
  return {};
}

Result<void> UartPl011::pause() {
  paused_ = true;
  return {};
}

Result<void> UartPl011::resume() {
  paused_ = false;
  backend_.resume_input();
  return {};
}

Result<StateRecord> UartPl011::save() {
  const auto& [rsr, ilpr, ibrd, fbrd, lcr_h, cr, ifls, imsc, ris, dmacr, fifo, head, count] = state_;
  UartPl011StateV1 saved{
      .uartrsr = rsr,
      .uartilpr = ilpr,
      .uartibrd = ibrd,
      .uartfbrd = fbrd,
      .uartlcr_h = lcr_h,
      .uartcr = cr,
      .uartifls = ifls,
      .uartimsc = imsc,
      .uartris = ris,
      .uartdmacr = dmacr,
      .receive_fifo = {},
  };
  for (unsigned index = 0; index < count; ++index) {
    saved.receive_fifo.push_back(fifo.at((head + index) % kFifoDepth));
  }
  return save_state(std::move(saved));
}

Result<void> UartPl011::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<UartPl011StateV1>(record));
  const auto& [rsr, ilpr, ibrd, fbrd, lcr_h, cr, ifls, imsc, ris, dmacr, fifo] = saved;
  const bool reserved_bits_set =
      (rsr & ~unsigned{kRSR_OE}) != 0 || (ilpr & ~kUARTILPR_Mask) != 0 || (fbrd & ~kUARTFBRD_Mask) != 0 ||
      (lcr_h & ~kUARTLCR_H_Mask) != 0 || (cr & ~kUARTCR_Mask) != 0 || (ifls & ~kUARTIFLS_Mask) != 0 ||
      (imsc & ~kInterruptMask) != 0 || (ris & ~kInterruptMask) != 0 || (dmacr & ~kUARTDMACR_Mask) != 0;
  if (reserved_bits_set) {
    return fail(Errc::kCorrupt, "{}: reserved register bits set", UartPl011StateV1::kKind.kind);
  }
  if (fifo.size() > kFifoDepth) {
    return fail(Errc::kCorrupt, "{}: receive FIFO of {} characters", UartPl011StateV1::kKind.kind, fifo.size());
  }
  state_ = {
      .uartrsr = rsr,
      .uartilpr = ilpr,
      .uartibrd = ibrd,
      .uartfbrd = fbrd,
      .uartlcr_h = lcr_h,
      .uartcr = cr,
      .uartifls = ifls,
      .uartimsc = imsc,
      .uartris = ris,
      .uartdmacr = dmacr,
      .fifo = {},
      .fifo_head = 0,
      .fifo_count = static_cast<uint8_t>(fifo.size()),
  };
  std::ranges::copy(fifo, state_.fifo.begin());
  irq_.restore_level(irq_level());
  return {};
}

FdtNode UartPl011::describe(const FdtPlacement& placement) const {
  FdtNode node(fdt_unit_name("serial", placement.window.base()));
  node.add_strings("compatible", {"arm,pl011", "arm,primecell"});
  node.add_reg(placement.window);
  add_spi(node, placement.intid, IrqTrigger::kLevelHigh);
  node.add_cells("clocks", {placement.clock_phandle, placement.clock_phandle});
  node.add_strings("clock-names", {"uartclk", "apb_pclk"});
  return node;
}

}  // namespace tandem::devices
