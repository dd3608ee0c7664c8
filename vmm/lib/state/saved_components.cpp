// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/state/saved_components.hpp"

namespace tandem {

Result<SavedComponents> SavedComponents::create(MachineState state) {
  SavedComponents saved;
  for (auto& [component, record] : state) {
    if (!saved.left_.try_emplace(component, std::move(record)).second) {
      return fail(Errc::kCorrupt, "{}: its state is there twice", component);
    }
  }
  return saved;
}

Result<StateRecord> SavedComponents::take(std::string_view component) {
  const auto it = left_.find(component);
  if (it == left_.end()) {
    return fail(Errc::kCorrupt, "{}: its state is missing", component);
  }
  return std::move(left_.extract(it).mapped());
}

Result<void> SavedComponents::restore(Component& component) {
  const StateRecord record = TANDEM_TRY(take(component.name()));
  return with_context(component.restore(record), component.name());
}

Result<void> SavedComponents::finish() const {
  if (left_.empty()) {
    return {};
  }
  return fail(Errc::kCorrupt, "{}: this machine has no such component", left_.begin()->first);
}

Result<void> save_into(MachineState& state, Component& component) {
  StateRecord record = TANDEM_TRY(with_context(component.save(), component.name()));
  state.push_back({.component = std::string(component.name()), .record = std::move(record)});
  return {};
}

}  // namespace tandem
