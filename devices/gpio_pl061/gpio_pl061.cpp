// SPDX-License-Identifier: Apache-2.0
#include "devices/gpio_pl061/gpio_pl061.hpp"

#include <utility>

#include "devices/gpio_pl061/gpio_pl061_regs.hpp"
#include "devices/gpio_pl061/gpio_pl061_state.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace pl061;

namespace {

/// How long the key is down: guests look at the pin only after their debounce interval, some milliseconds.
constexpr uint64_t kKeyDownNs = 100'000'000;
constexpr uint8_t kPowerKey = bit<uint8_t>(GpioPl061::kPowerKeyPin);

/// The bits that a GPIODATA access at `offset` is about: "Data register, GPIODATA".
uint8_t data_mask(uint64_t offset) { return static_cast<uint8_t>(bit_field(offset, 9, 2)); }

}  // namespace

GpioPl061::GpioPl061(std::string name, IrqLine irq, std::unique_ptr<Timer> release)
    : name_(std::move(name)), irq_(irq), release_(std::move(release)) {
  release_->set_callback([this] {
    if (!paused_) {
      set_power_key(false);
    }
  });
}

MmioRead GpioPl061::read(MmioAccess access) {
  if (const auto ok = check_primecell_access(access); !ok) {
    return std::unexpected(ok.error());
  }
  if (access.offset < GPIODIR) {
    return pins() & data_mask(access.offset);
  }
  switch (access.offset) {
    case GPIODIR:
      return state_.gpiodir;
    case GPIOIS:
      return state_.gpiois;
    case GPIOIBE:
      return state_.gpioibe;
    case GPIOIEV:
      return state_.gpioiev;
    case GPIOIE:
      return state_.gpioie;
    case GPIORIS:
      return raw_status();
    case GPIOMIS:
      return raw_status() & state_.gpioie;
    case GPIOIC:
      return std::unexpected(BadAccess::kWriteOnly);
    case GPIOAFSEL:
      return state_.gpioafsel;
    default:
      break;
  }
  if (const auto id = primecell_id(kId, access.offset)) {
    return *id;
  }
  return std::unexpected(BadAccess::kNoRegister);
}

MmioWrite GpioPl061::write(MmioAccess access, uint64_t value) {
  if (const auto ok = check_primecell_access(access); !ok) {
    return ok;
  }
  const auto byte = static_cast<uint8_t>(value);
  const uint8_t pins_before = pins();
  if (access.offset < GPIODIR) {
    // Only outputs take a value.
    const unsigned written = data_mask(access.offset) & state_.gpiodir;
    state_.gpiodata = static_cast<uint8_t>((state_.gpiodata & ~written) | (byte & written));
    note_edges(pins_before);
    return {};
  }
  switch (access.offset) {
    case GPIODIR:
      state_.gpiodir = byte;
      note_edges(pins_before);
      break;
    case GPIOIS:
      state_.gpiois = byte;
      break;
    case GPIOIBE:
      state_.gpioibe = byte;
      break;
    case GPIOIEV:
      state_.gpioiev = byte;
      break;
    case GPIOIE:
      state_.gpioie = byte;
      break;
    case GPIOIC:
      state_.edges = static_cast<uint8_t>(state_.edges & ~byte);
      break;
    case GPIOAFSEL:
      state_.gpioafsel = byte;
      break;
    case GPIORIS:
    case GPIOMIS:
      return std::unexpected(BadAccess::kReadOnly);
    default:
      return std::unexpected(primecell_id(kId, access.offset) ? BadAccess::kReadOnly : BadAccess::kNoRegister);
  }
  update_irq();
  return {};
}

uint8_t GpioPl061::pins() const {
  return static_cast<uint8_t>((state_.inputs & ~state_.gpiodir) | (state_.gpiodata & state_.gpiodir));
}

/// Levels that are configured to interrupt count as long as they last; edges until they are cleared.
uint8_t GpioPl061::raw_status() const {
  const State& s = state_;
  const unsigned active_levels = ~(pins() ^ unsigned{s.gpioiev});
  return static_cast<uint8_t>((active_levels & s.gpiois) | (s.edges & ~s.gpiois));
}

/// Notes the edges that interrupts are configured for, after the pins may have changed.
void GpioPl061::note_edges(uint8_t pins_before) {
  State& s = state_;
  const unsigned changed = pins_before ^ pins();
  const unsigned to_selected_level = ~(pins() ^ unsigned{s.gpioiev});
  s.edges = static_cast<uint8_t>(s.edges | (changed & ~s.gpiois & (s.gpioibe | to_selected_level)));
  update_irq();
}

bool GpioPl061::is_power_key_down() const { return (state_.inputs & kPowerKey) != 0; }

void GpioPl061::set_power_key(bool down) {
  const uint8_t pins_before = pins();
  state_.inputs = static_cast<uint8_t>(down ? state_.inputs | kPowerKey : state_.inputs & ~kPowerKey);
  note_edges(pins_before);
}

void GpioPl061::press_power_key() {
  set_power_key(true);
  if (!paused_) {
    release_->arm_after_ns(kKeyDownNs);
  }
}

Result<void> GpioPl061::reset() {
  state_ = {};
  release_->disarm();
  update_irq();
  return {};
}

Result<void> GpioPl061::pause() {
  paused_ = true;
  release_->disarm();
  return {};
}

Result<void> GpioPl061::resume() {
  paused_ = false;
  if (is_power_key_down()) {
    release_->arm_after_ns(kKeyDownNs);
  }
  return {};
}

Result<StateRecord> GpioPl061::save() {
  const auto& [inputs, data, dir, is, ibe, iev, ie, edges, afsel] = state_;
  return save_state(GpioPl061StateV1{
      .inputs = inputs,
      .gpiodata = data,
      .gpiodir = dir,
      .gpiois = is,
      .gpioibe = ibe,
      .gpioiev = iev,
      .gpioie = ie,
      .edges = edges,
      .gpioafsel = afsel,
  });
}

Result<void> GpioPl061::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<GpioPl061StateV1>(record));
  const auto& [inputs, data, dir, is, ibe, iev, ie, edges, afsel] = saved;
  if ((inputs & ~unsigned{kPowerKey}) != 0) {
    return fail(Errc::kCorrupt, "{}: pins without a source are high", GpioPl061StateV1::kKind.kind);
  }
  state_ = {
      .inputs = inputs,
      .gpiodata = data,
      .gpiodir = dir,
      .gpiois = is,
      .gpioibe = ibe,
      .gpioiev = iev,
      .gpioie = ie,
      .edges = edges,
      .gpioafsel = afsel,
  };
  irq_.restore_level(irq_level());
  return {};
}

FdtNode GpioPl061::describe(const FdtPlacement& placement, uint32_t phandle) const {
  FdtNode node(fdt_unit_name("gpio", placement.window.base()));
  node.add_strings("compatible", {"arm,pl061", "arm,primecell"});
  node.add_reg(placement.window);
  add_spi(node, placement.intid, IrqTrigger::kLevelHigh);
  node.add_cells("clocks", {placement.clock_phandle});
  node.add_string("clock-names", "apb_pclk");
  node.add_empty("gpio-controller").add_u32("#gpio-cells", 2);
  // Devices whose interrupts it takes are not addressed within it. (Devicetree Specification v0.4, "Interrupt Mapping")
  node.add_empty("interrupt-controller").add_u32("#interrupt-cells", 2).add_u32("#address-cells", 0);
  node.add_u32("phandle", phandle);
  return node;
}

FdtNode GpioPl061::describe_power_key(uint32_t phandle) {
  constexpr uint32_t kKeyPower = 116;  // KEY_POWER
  constexpr uint32_t kActiveHigh = 0;  // GPIO_ACTIVE_HIGH
  FdtNode key("poweroff");
  key.add_string("label", "power key");
  key.add_u32("linux,code", kKeyPower);
  key.add_cells("gpios", {phandle, kPowerKeyPin, kActiveHigh});
  FdtNode keys("gpio-keys");
  keys.add_string("compatible", "gpio-keys");
  keys.add_child(std::move(key));
  return keys;
}

}  // namespace tandem::devices
