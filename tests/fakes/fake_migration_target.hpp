// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/shared_disk.hpp"
#include "vmm/migration/migration_target.hpp"

namespace tandem::fakes {

/// A host that takes machines of one description.
class FakeMigrationTarget final : public migration::MigrationTarget {
 public:
  FakeMigrationTarget(size_t ram_bytes, SharedDisk* disk) : ram_bytes_(ram_bytes), disk_(disk) {}

  std::string fitting_spec = "a machine";
  std::optional<Error> restore_error;

  [[nodiscard]] bool is_running() const { return running_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  [[nodiscard]] bool was_prepared() const { return prepared_; }
  [[nodiscard]] bool was_restored() const { return restored_; }
  [[nodiscard]] const std::vector<std::byte>& ram() const { return ram_; }
  [[nodiscard]] const MachineState& state() const { return state_; }
  [[nodiscard]] const std::vector<migration::ArrivedImage>& images() const { return images_; }

  Result<std::vector<std::string>> differences(std::string_view spec_document) override {
    if (spec_document == fitting_spec) {
      return {};
    }
    return std::vector<std::string>{"no disk for id disk0", "SVE is not\nthere"};
  }
  Result<migration::PreparedMachine> prepare(std::string_view /*spec*/,
                                             std::vector<migration::ArrivedImage> images) override {
    prepared_ = true;
    images_ = std::move(images);
    ram_.resize(ram_bytes_);
    return migration::PreparedMachine{.ram = ram_,
                                      .sees_locks = disk_ != nullptr && disk_->owner() == SharedDisk::Owner::kSource};
  }
  Result<void> restore(MachineState state) override {
    restored_ = true;
    state_ = std::move(state);
    if (restore_error) {
      return std::unexpected(*restore_error);
    }
    return {};
  }
  Result<void> take_disks() override {
    if (disk_ != nullptr && !disk_->lock(SharedDisk::Owner::kTarget)) {
      return fail(Errc::kBusy, "disk0: in use");
    }
    return {};
  }
  void release_disks() override {
    if (disk_ != nullptr) {
      disk_->unlock(SharedDisk::Owner::kTarget);
    }
  }
  void go_on(Arrival arrival) override {
    running_ = true;
    paused_ = arrival == Arrival::kPaused;
  }

 private:
  size_t ram_bytes_;
  SharedDisk* disk_;
  std::vector<std::byte> ram_;
  std::vector<migration::ArrivedImage> images_;
  MachineState state_;
  bool prepared_ = false;
  bool restored_ = false;
  bool running_ = false;
  bool paused_ = false;
};

}  // namespace tandem::fakes
