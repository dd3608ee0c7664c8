// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vmm/cli/controlled_vm.hpp"
#include "vmm/cli/host_names.hpp"
#include "vmm/control/vm_registry.hpp"
#include "vmm/machine/machine.hpp"
#include "vmm/migration/difference_base.hpp"
#include "vmm/migration/migration_target.hpp"

namespace tandem::cli {

/// This host as the target of a migration: makes the machine that comes, with nothing of this host but what its user
/// named.
class ArrivingMachine final : public migration::MigrationTarget {
 public:
  explicit ArrivingMachine(HostNames names) : names_(std::move(names)) {}

  Result<std::vector<std::string>> differences(std::string_view spec_document) override;
  Result<migration::PreparedMachine> prepare(std::string_view spec_document,
                                             std::vector<migration::ArrivedImage> images) override;
  Result<void> restore(MachineState state) override;
  Result<void> take_disks() override { return machine_->reclaim_disks(); }
  void release_disks() override { machine_->release_disks(); }
  void go_on(Arrival arrival) override;

  /// Runs the machine that has arrived until its end, under its name. @pre go_on was called.
  MachineEnd run();

 private:
  HostNames names_;
  std::optional<control::VmRegistration> place_;  // of the name; before what is known by it
  std::unique_ptr<Machine> machine_;
  std::optional<migration::DifferenceBase> base_;
  std::unique_ptr<ControlledVm> controlled_;
  Machine::Start start_ = Machine::Start::kRunning;
};

}  // namespace tandem::cli
