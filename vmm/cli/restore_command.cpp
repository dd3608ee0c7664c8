// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/restore_command.hpp"

#include <fmt/ranges.h>

#include <memory>
#include <utility>

#include "devices/backend/stdio_backend.hpp"
#include "vmm/cli/controlled_vm.hpp"
#include "vmm/cli/progress.hpp"
#include "vmm/cli/vm_process.hpp"
#include "vmm/machine/board_layout.hpp"
#include "vmm/machine/host_probe.hpp"
#include "vmm/machine/machine_spec_json.hpp"
#include "vmm/migration/snapshot.hpp"

namespace tandem::cli {
namespace {

using migration::Snapshot;

/// The machine in the snapshot, with names of this host; refused if this host cannot have it.
Result<MachineSpec> read_spec(const Snapshot& snapshot, const HostNames& names) {
  MachineSpec spec = TANDEM_TRY(machine_spec_from_json(snapshot.spec_document()));
  if (spec.memory_bytes != snapshot.ram_bytes()) {
    return fail(Errc::kCorrupt, "the machine has {} bytes of RAM, the snapshot {}", spec.memory_bytes,
                snapshot.ram_bytes());
  }
  TANDEM_TRY(require_host_fits(spec));
  return with_host_names(std::move(spec), names, SourceNames::kUsed);
}

Result<GuestRam> make_ram(const Snapshot& snapshot, bool eager) {
  const auto range = GuestRange::create(board::kRamBase, snapshot.ram_bytes());
  TANDEM_ASSERT(range.has_value(), "the spec's size was checked");
  if (!eager) {
    return snapshot.map_ram(*range);
  }
  GuestRam ram = TANDEM_TRY(with_context(GuestRam::create_anonymous(*range), "guest memory"));
  ProgressBar progress;
  TANDEM_TRY(snapshot.read_ram(ram.bytes(), progress));
  return ram;
}

Result<std::unique_ptr<Machine>> make_machine(const Snapshot& snapshot, MachineSpec spec, bool eager) {
  std::vector<BootImage> images;
  for (migration::SavedImage& image : TANDEM_TRY(snapshot.load_images())) {
    images.push_back({.role = std::move(image.role), .image = std::move(image.image)});
  }
  GuestRam ram = TANDEM_TRY(make_ram(snapshot, eager));
  return Machine::create_to_restore({.spec = std::move(spec),
                                     .images = std::move(images),
                                     .ram = std::move(ram),
                                     .ram_file = eager ? std::string() : snapshot.ram_files().back().file().label()});
}

/// Notes what is written to RAM from now on. Without that the machine can still be saved as a whole.
void start_base(migration::DifferenceBase& base, const Snapshot& snapshot) {
  if (const auto started = base.start(snapshot); !started) {
    log::warn("restore: no difference to {} can be saved: {}", snapshot.chain().front().path(),
              started.error().message());
  }
}

Result<void> restore_state(Machine& machine, const Snapshot& snapshot, const RestoreRequest& request) {
  return machine.restore(snapshot.state(),
                         {.clock = request.freeze_clock ? RestoreChoices::Clock::kFreeze : RestoreChoices::Clock::kWall,
                          .identity = RestoreChoices::Identity::kCopy});
}

/// Restores the machine and runs it under its name. All that it held is given back on return, the terminal included.
Result<MachineEnd> restore_and_run(const RestoreRequest& request) {
  devices::fill_standard_descriptors();  // before anything is opened
  auto snapshot = std::optional(TANDEM_TRY(Snapshot::open(request.directory, request.base_places)));
  MachineSpec spec = TANDEM_TRY(with_context(read_spec(*snapshot, request.names), request.directory));
  const auto place = TANDEM_TRY(
      with_context(control::VmRegistration::claim(control::runtime_directory(), spec.name), "control socket"));
  const auto machine = TANDEM_TRY(make_machine(*snapshot, std::move(spec), request.eager));
  migration::DifferenceBase base(machine->write_log());
  start_base(base, *snapshot);
  TANDEM_TRY(restore_state(*machine, *snapshot, request));
  snapshot.reset();  // the machine has what it needs of it open
  auto settler = TANDEM_TRY(control::GuestSettler::create(settling_order(machine->spec(), !request.freeze_clock)));
  const auto controlled =
      TANDEM_TRY(with_context(ControlledVm::create(*machine, place, base, std::move(settler)), "control socket"));
  if (!request.paused) {
    controlled->note_guest_runs();
  }
  MachineEnd end = machine->run(request.paused ? Machine::Start::kPaused : Machine::Start::kRunning);
  controlled->finish();
  return end;
}

}  // namespace

int run(const RestoreRequest& request) {
  become_vm_process(request.log_level);
  return report_end("restore", restore_and_run(request));
}

}  // namespace tandem::cli
