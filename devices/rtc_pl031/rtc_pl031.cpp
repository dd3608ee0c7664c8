// SPDX-License-Identifier: Apache-2.0
#include "devices/rtc_pl031/rtc_pl031.hpp"

#include <utility>

#include "devices/rtc_pl031/rtc_pl031_regs.hpp"
#include "devices/rtc_pl031/rtc_pl031_state.hpp"

namespace tandem::devices {

using namespace pl031;

namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

}  // namespace

RtcPl031::RtcPl031(std::string name, IrqLine irq, const Clock& clock, std::unique_ptr<Timer> alarm)
    : name_(std::move(name)), irq_(irq), clock_(clock), alarm_(std::move(alarm)) {
  alarm_->set_callback([this] {
    if (!paused_) {
      find_match();
      arm_alarm();
    }
  });
  look_from_now();
}

MmioRead RtcPl031::read(MmioAccess access) {
  if (const auto ok = check_primecell_access(access); !ok) {
    return std::unexpected(ok.error());
  }
  find_match();
  switch (access.offset) {
    case RTCDR:
      return now_s();
    case RTCMR:
      return state_.rtcmr;
    case RTCLR:
      return state_.rtclr;
    case RTCCR:
      return kRTCCR_Start;
    case RTCIMSC:
      return state_.interrupt_enabled ? kInterrupt : 0;
    case RTCRIS:
      return state_.interrupt_pending ? kInterrupt : 0;
    case RTCMIS:
      return irq_level() ? kInterrupt : 0;
    case RTCICR:
      return std::unexpected(BadAccess::kWriteOnly);
    default:
      break;
  }
  if (const auto id = primecell_id(kId, access.offset)) {
    return *id;
  }
  return std::unexpected(BadAccess::kNoRegister);
}

MmioWrite RtcPl031::write(MmioAccess access, uint64_t value) {
  if (const auto ok = check_primecell_access(access); !ok) {
    return ok;
  }
  find_match();
  const auto word = static_cast<uint32_t>(value);
  switch (access.offset) {
    case RTCMR:
      state_.rtcmr = word;
      look_from_now();
      break;
    case RTCLR:
      state_.rtclr = word;
      state_.offset_s += word - now_s();
      look_from_now();
      break;
    case RTCCR:  // started already, and only a reset stops it
      break;
    case RTCIMSC:
      state_.interrupt_enabled = (word & kInterrupt) != 0;
      break;
    case RTCICR:
      state_.interrupt_pending = state_.interrupt_pending && (word & kInterrupt) == 0;
      break;
    case RTCDR:
    case RTCRIS:
    case RTCMIS:
      return std::unexpected(BadAccess::kReadOnly);
    default:
      return std::unexpected(primecell_id(kId, access.offset) ? BadAccess::kReadOnly : BadAccess::kNoRegister);
  }
  update_irq();
  return {};
}

uint32_t RtcPl031::now_s() const {
  return static_cast<uint32_t>(clock_.realtime_ns() / kNsPerSecond) + state_.offset_s;
}

/// Notes a match between `checked_s` and now.
void RtcPl031::find_match() {
  const uint32_t now = now_s();
  const uint32_t passed = now - state_.checked_s;
  const uint32_t until_match = state_.rtcmr - state_.checked_s;
  const bool clock_was_set_back = static_cast<int32_t>(passed) < 0;
  if (!clock_was_set_back && until_match != 0 && until_match <= passed) {
    state_.interrupt_pending = true;
  }
  state_.checked_s = now;
  update_irq();
}

/// Looks for matches from now on, now included: the clock or the match register was written.
void RtcPl031::look_from_now() {
  state_.checked_s = now_s();
  if (state_.rtcmr == state_.checked_s) {
    state_.interrupt_pending = true;
  }
  arm_alarm();
}

void RtcPl031::arm_alarm() {
  const int64_t host_s = clock_.realtime_ns() / kNsPerSecond;
  const uint32_t until_match = state_.rtcmr - (static_cast<uint32_t>(host_s) + state_.offset_s);
  constexpr int64_t kOneRound = int64_t{1} << 32;
  alarm_->arm_at_ns((host_s + (until_match == 0 ? kOneRound : int64_t{until_match})) * kNsPerSecond);
}

Result<void> RtcPl031::reset() {
  state_ = {};
  look_from_now();
  update_irq();
  return {};
}

Result<void> RtcPl031::pause() {
  if (!paused_) {
    find_match();
    paused_ = true;
    alarm_->disarm();
  }
  return {};
}

Result<void> RtcPl031::resume() {
  paused_ = false;
  find_match();
  arm_alarm();
  return {};
}

Result<StateRecord> RtcPl031::save() {
  const auto& [rtcmr, rtclr, enabled, pending, offset_s, checked_s] = state_;
  return save_state(RtcPl031StateV1{
      .rtcmr = rtcmr,
      .rtclr = rtclr,
      .interrupt_enabled = enabled,
      .interrupt_pending = pending,
      .offset_s = offset_s,
      .checked_s = checked_s,
  });
}

Result<void> RtcPl031::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<RtcPl031StateV1>(record));
  const auto& [rtcmr, rtclr, enabled, pending, offset_s, checked_s] = saved;
  state_ = {
      .rtcmr = rtcmr,
      .rtclr = rtclr,
      .interrupt_enabled = enabled,
      .interrupt_pending = pending,
      .offset_s = offset_s,
      .checked_s = checked_s,
  };
  irq_.restore_level(irq_level());
  return {};
}

FdtNode RtcPl031::describe(const FdtPlacement& placement) const {
  FdtNode node(fdt_unit_name("rtc", placement.window.base()));
  node.add_strings("compatible", {"arm,pl031", "arm,primecell"});
  node.add_reg(placement.window);
  add_spi(node, placement.intid, IrqTrigger::kLevelHigh);
  node.add_cells("clocks", {placement.clock_phandle});
  node.add_string("clock-names", "apb_pclk");
  return node;
}

}  // namespace tandem::devices
