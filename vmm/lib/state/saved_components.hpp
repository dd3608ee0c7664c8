// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/component.hpp"
#include "vmm/lib/state/machine_state.hpp"

namespace tandem {

/// A machine's saved state while it is handed out to its components, each of which has to get exactly what it saved.
class SavedComponents {
 public:
  /// @errors  Errc::kCorrupt: a component is there twice.
  static Result<SavedComponents> create(MachineState state);

  /// Gives out the state of `component`.
  /// @errors  Errc::kCorrupt: it is not there.
  Result<StateRecord> take(std::string_view component);

  /// Has `component` take over its state.
  /// @errors  Errc::kCorrupt: as `take`; and whatever `Component::restore` refuses, under the component's name.
  Result<void> restore(Component& component);

  /// To be called when every component has its state.
  /// @errors  Errc::kCorrupt: something is left, which the machine has no component for.
  [[nodiscard]] Result<void> finish() const;

 private:
  SavedComponents() = default;
  std::map<std::string, StateRecord, std::less<>> left_;
};

/// Adds what `component` saves to `state`. @errors as `Component::save`, under its name.
Result<void> save_into(MachineState& state, Component& component);

}  // namespace tandem
