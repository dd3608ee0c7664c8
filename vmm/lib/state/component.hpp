// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/state_record.hpp"

namespace tandem {

/// Anything with the machine's lifetime: devices, vCPUs, the vGIC, paravirtual services.
///
/// The machine calls these from one thread, with every vCPU stopped, and holds the lock of a device while it does.
/// Order: pause, then any of {save, restore, reset}, then resume. `pause` and `resume` may be called twice in a row.
/// Nothing has a default: "no state" is said with `StateRecord::none`.
class Component {
 public:
  virtual ~Component() = default;

  /// Name of this instance, unique in the machine: "uart0".
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Makes the guest-visible state what it is after power-on; never touches host resources' contents.
  virtual Result<void> reset() = 0;

  /// Finishes work in flight and starts no more until `resume`.
  virtual Result<void> pause() = 0;
  virtual Result<void> resume() = 0;

  /// @pre     paused.
  virtual Result<StateRecord> save() = 0;

  /// Replaces the state; raises no interrupt edge.
  /// @pre     paused.
  /// @errors  Errc::kCorrupt: the record is not one of this component, or holds impossible values; the component is then
  ///          in an unspecified but safe state.
  virtual Result<void> restore(const StateRecord& record) = 0;
};

}  // namespace tandem
