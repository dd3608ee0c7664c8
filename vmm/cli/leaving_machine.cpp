// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/leaving_machine.hpp"

#include "vmm/lib/log/log.hpp"
#include "vmm/machine/machine_spec_json.hpp"

namespace tandem::cli {

Result<std::string> LeavingMachine::spec_document() { return to_json(machine_.spec()); }

std::vector<migration::LeavingImage> LeavingMachine::images() {
  std::vector<migration::LeavingImage> images;
  for (const auto& [role, image] : machine_.boot_images()) {
    images.push_back({.role = std::string(role), .image = image});
  }
  return images;
}

Result<void> LeavingMachine::start_write_log() {
  writes_ = TANDEM_TRY(machine_.write_log().open());
  return {};
}

Result<void> LeavingMachine::collect(DirtyBitmap& into) { return writes_->collect(into); }

void LeavingMachine::throttle(unsigned percent) {
  if (percent == 0) {
    throttle_.reset();
    return;
  }
  if (!throttle_) {
    auto made = machine_.make_throttle();
    if (!made) {
      log::warn("migrate: {}", made.error().message());
      return;
    }
    throttle_ = std::move(*made);
  }
  throttle_->set_percent(percent);
}

Result<MachineState> LeavingMachine::pause_and_save() {
  return machine_.on_control_thread([this]() -> Result<MachineState> {
    TANDEM_TRY(machine_.hold());
    held_ = true;
    paused_by_user_ = machine_.is_paused_by_user();
    return machine_.save_state();
  });
}

Result<void> LeavingMachine::resume_after_failure() {
  if (!held_) {
    return {};
  }
  held_ = false;
  return machine_.on_control_thread([this] { return machine_.release(); });
}

Result<void> LeavingMachine::release_disks() {
  return machine_.on_control_thread([this]() -> Result<void> {
    machine_.release_disks();
    return {};
  });
}

Result<void> LeavingMachine::reclaim_disks() {
  return machine_.on_control_thread([this] { return machine_.reclaim_disks(); });
}

void LeavingMachine::leave_to_user() {
  held_ = false;
  const auto left = machine_.on_control_thread([this] { return machine_.release_paused(); });
  if (!left) {
    log::error("migrate: {}", left.error().message());
  }
}

}  // namespace tandem::cli
