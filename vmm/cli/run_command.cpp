// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/run_command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "devices/backend/stdio_backend.hpp"
#include "vmm/cli/controlled_vm.hpp"
#include "vmm/cli/vm_process.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"
#include "vmm/machine/machine.hpp"

namespace tandem::cli {
namespace {

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!file) {
    return fail_errno("{}", path);
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return fail_errno("{}", path);
    }
    bytes = bytes.subspan(written < 0 ? 0 : static_cast<size_t>(written));
  }
  return {};
}

Result<std::unique_ptr<Machine>> build(const RunRequest& request) {
  auto machine = TANDEM_TRY(Machine::create(request.spec));
  if (!request.dump_dtb_path.empty()) {
    const auto tree = TANDEM_TRY(machine->device_tree());
    TANDEM_TRY(with_context(write_file(request.dump_dtb_path, tree), "--dump-dtb"));
  }
  return machine;
}

/// Builds the machine and runs it under its name. All that it held is given back on return, the terminal included.
Result<MachineEnd> build_and_run(const RunRequest& request) {
  if (request.dry_run) {
    TANDEM_TRY(build(request));
    return MachineEnd{MachineEnd::Kind::kPoweredOff, {}};
  }
  devices::fill_standard_descriptors();  // before the lock is opened
  // The name comes first: to open a console can truncate the file of the VM that has it.
  const auto place = TANDEM_TRY(
      with_context(control::VmRegistration::claim(control::runtime_directory(), request.spec.name), "control socket"));
  const auto machine = TANDEM_TRY(build(request));
  migration::DifferenceBase base(machine->write_log());
  const auto controlled = TANDEM_TRY(with_context(ControlledVm::create(*machine, place, base), "control socket"));
  MachineEnd end = machine->run(request.paused ? Machine::Start::kPaused : Machine::Start::kRunning);
  controlled->finish();
  return end;
}

}  // namespace

int run(const RunRequest& request) {
  become_vm_process(request.log_level);
  return report_end("run", build_and_run(request));
}

}  // namespace tandem::cli
