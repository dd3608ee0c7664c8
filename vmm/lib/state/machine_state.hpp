// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vmm/lib/state/state_record.hpp"

namespace tandem {

/// What one component saved.
struct ComponentState {
  std::string component;  ///< Component::name().
  StateRecord record;
  bool operator==(const ComponentState&) const = default;
};

/// The state of a machine but for its RAM: one entry for each component, in the order in which they are restored.
using MachineState = std::vector<ComponentState>;

}  // namespace tandem
