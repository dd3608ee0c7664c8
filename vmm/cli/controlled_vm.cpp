// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/controlled_vm.hpp"

#include <utility>

#include "vmm/cli/migrate_job.hpp"
#include "vmm/cli/save_job.hpp"

namespace tandem::cli {

Result<std::unique_ptr<ControlledVm>> ControlledVm::create(Machine& machine, const control::VmRegistration& place,
                                                           migration::DifferenceBase& base,
                                                           std::unique_ptr<control::GuestSettler> settler) {
  std::unique_ptr<ControlledVm> vm(new ControlledVm(machine, std::move(settler)));
  EventLoop& loop = machine.control_loop();
  vm->jobs_ = TANDEM_TRY(control::JobRunner::create(loop));
  auto commands = control::machine_commands(*vm, *vm->jobs_);
  commands.push_back(save_command(machine, base));
  commands.push_back(migrate_command(machine));
  vm->server_ =
      TANDEM_TRY(control::ControlServer::create(loop, TANDEM_TRY(place.listen()), *vm->jobs_, std::move(commands)));
  return vm;
}

MachineStatus ControlledVm::status() const {
  MachineStatus status = machine_.status();
  if (settler_) {
    status.settling = settler_->status();
  }
  return status;
}

Result<void> ControlledVm::resume() {
  TANDEM_TRY(machine_.resume());
  note_guest_runs();
  return {};
}

}  // namespace tandem::cli
