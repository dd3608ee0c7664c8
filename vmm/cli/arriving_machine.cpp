// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/arriving_machine.hpp"

#include "vmm/kvm/kvm.hpp"
#include "vmm/machine/board_layout.hpp"
#include "vmm/machine/host_probe.hpp"
#include "vmm/machine/machine_spec_json.hpp"

namespace tandem::cli {

Result<std::vector<std::string>> ArrivingMachine::differences(std::string_view spec_document) {
  const MachineSpec spec = TANDEM_TRY(machine_spec_from_json(spec_document));
  const Kvm kvm = TANDEM_TRY(Kvm::open());
  auto found = tandem::differences(spec, TANDEM_TRY(probe_host(kvm)));
  if (const auto named = with_host_names(spec, names_, SourceNames::kNotUsed); !named) {
    found.push_back(named.error().message());
  }
  return found;
}

Result<migration::PreparedMachine> ArrivingMachine::prepare(std::string_view spec_document,
                                                            std::vector<migration::ArrivedImage> images) {
  MachineSpec spec =
      TANDEM_TRY(with_host_names(TANDEM_TRY(machine_spec_from_json(spec_document)), names_, SourceNames::kNotUsed));
  place_.emplace(TANDEM_TRY(
      with_context(control::VmRegistration::claim(control::runtime_directory(), spec.name), "control socket")));
  const auto range = GuestRange::create(board::kRamBase, spec.memory_bytes);
  TANDEM_ASSERT(range.has_value(), "the document's reader checks the size");
  GuestRam ram = TANDEM_TRY(with_context(GuestRam::create_anonymous(*range), "guest memory"));
  const std::span<std::byte> bytes = ram.bytes();  // which stay there when the object moves
  std::vector<BootImage> boot_images;
  for (migration::ArrivedImage& image : images) {
    boot_images.push_back({.role = std::move(image.role), .image = std::move(image.image)});
  }
  machine_ = TANDEM_TRY(Machine::create_to_restore({.spec = std::move(spec),
                                                    .images = std::move(boot_images),
                                                    .ram = std::move(ram),
                                                    .disk_locking = devices::DiskFile::Locking::kLater}));
  return migration::PreparedMachine{.ram = bytes, .sees_locks = machine_->devices().are_disks_locked_elsewhere()};
}

Result<void> ArrivingMachine::restore(MachineState state) {
  TANDEM_TRY(machine_->restore(std::move(state),
                               {.clock = RestoreChoices::Clock::kWall, .identity = RestoreChoices::Identity::kSame}));
  TANDEM_TRY(machine_->create_threads());
  base_.emplace(machine_->write_log());
  auto settler = TANDEM_TRY(control::GuestSettler::create(settling_order(machine_->spec(), true)));
  controlled_ =
      TANDEM_TRY(with_context(ControlledVm::create(*machine_, *place_, *base_, std::move(settler)), "control socket"));
  return {};
}

void ArrivingMachine::go_on(Arrival arrival) {
  start_ = arrival == Arrival::kPaused ? Machine::Start::kPaused : Machine::Start::kRunning;
  machine_->devices().announce();
}

MachineEnd ArrivingMachine::run() {
  if (start_ == Machine::Start::kRunning) {
    controlled_->note_guest_runs();
  }
  MachineEnd end = machine_->run(start_);
  controlled_->finish();
  return end;
}

}  // namespace tandem::cli
