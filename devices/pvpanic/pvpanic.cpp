// SPDX-License-Identifier: Apache-2.0
#include "devices/pvpanic/pvpanic.hpp"

#include <optional>

#include "devices/pvpanic/pvpanic_regs.hpp"

namespace tandem::devices {
namespace {

constexpr StateKind kNoState{"pvpanic", 0};

std::optional<BadAccess> fault_of(MmioAccess access) {
  if (access.offset != pvpanic::kEvent) {
    return BadAccess::kNoRegister;
  }
  return access.width_bytes == 1 ? std::nullopt : std::optional(BadAccess::kWidth);
}

}  // namespace

MmioRead PvPanic::read(MmioAccess access) {
  if (const auto fault = fault_of(access)) {
    return std::unexpected(*fault);
  }
  return pvpanic::kEvents;
}

MmioWrite PvPanic::write(MmioAccess access, uint64_t value) {
  if (const auto fault = fault_of(access)) {
    return std::unexpected(*fault);
  }
  if ((value & pvpanic::kPanicked) != 0) {
    sink_.on_panic();
  } else if ((value & pvpanic::kCrashLoaded) != 0) {
    sink_.on_crash_loaded();
  }
  return {};
}

Result<StateRecord> PvPanic::save() { return StateRecord::none(kNoState.kind); }

Result<void> PvPanic::restore(const StateRecord& record) {
  TANDEM_TRY(expect_kind(record, kNoState));
  if (!record.payload.empty()) {
    return fail(Errc::kCorrupt, "{}: {} bytes of state where none are due", kNoState.kind, record.payload.size());
  }
  return {};
}

FdtNode PvPanic::describe(GuestRange window) const {
  FdtNode node(fdt_unit_name("pvpanic", window.base()));
  node.add_string("compatible", "qemu,pvpanic-mmio");
  node.add_reg(window);
  return node;
}

}  // namespace tandem::devices
