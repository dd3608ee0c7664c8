// SPDX-License-Identifier: Apache-2.0
// The part of Machine that takes its state apart, and puts it together again. The order is that of dependence: the counter
// is what the vCPUs' timers compare with, and the interrupt controller takes over levels that the devices then keep.
#include "vmm/lib/state/saved_components.hpp"
#include "vmm/machine/boot_state.hpp"
#include "vmm/machine/machine.hpp"

namespace tandem {
namespace {

constexpr std::string_view kBootComponent = "boot";

}  // namespace

Result<MachineState> Machine::save_state() {
  MachineState state;
  TANDEM_TRY(save_into(state, *counter_));
  for (const auto& vcpu : vcpus_) {
    TANDEM_TRY(save_into(state, *vcpu));
  }
  TANDEM_TRY(save_into(state, *vgic_));
  TANDEM_TRY(devices_->save(state));
  TANDEM_TRY(pv_->save(state));
  const BootStateV1 boot{.reset_count = reset_count_};
  state.push_back({.component = std::string(kBootComponent), .record = tandem::save_state(boot)});
  return state;
}

Result<void> Machine::restore(MachineState state, const RestoreChoices& choices) {
  SavedComponents saved = TANDEM_TRY(SavedComponents::create(std::move(state)));
  TANDEM_TRY(devices_->pause());
  TANDEM_TRY(pv_->pause());
  TANDEM_TRY(saved.restore(*counter_));
  for (const auto& vcpu : vcpus_) {
    TANDEM_TRY(saved.restore(*vcpu));
  }
  TANDEM_TRY(saved.restore(*vgic_));
  TANDEM_TRY(devices_->restore(saved));
  TANDEM_TRY(pv_->restore(saved));
  const StateRecord boot = TANDEM_TRY(saved.take(kBootComponent));
  reset_count_ = TANDEM_TRY(with_context(load_state<BootStateV1>(boot), kBootComponent)).reset_count;
  TANDEM_TRY(saved.finish());
  if (choices.clock == RestoreChoices::Clock::kFreeze) {
    devices_->go_on_from_pause();
  }
  return choices.identity == RestoreChoices::Identity::kCopy ? devices_->renew_generation() : Result<void>();
}

}  // namespace tandem
