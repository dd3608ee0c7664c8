// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/controlled_vm.hpp"

#include <utility>

namespace tandem::cli {

Result<std::unique_ptr<ControlledVm>> ControlledVm::create(Machine& machine, const control::VmRegistration& place) {
  std::unique_ptr<ControlledVm> vm(new ControlledVm(machine));
  EventLoop& loop = machine.control_loop();
  vm->jobs_ = TANDEM_TRY(control::JobRunner::create(loop));
  vm->server_ = TANDEM_TRY(control::ControlServer::create(loop, TANDEM_TRY(place.listen()), *vm->jobs_,
                                                          control::machine_commands(*vm, *vm->jobs_)));
  return vm;
}

}  // namespace tandem::cli
