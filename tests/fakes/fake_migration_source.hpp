// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/shared_disk.hpp"
#include "vmm/migration/migration_source.hpp"

namespace tandem::fakes {

/// A machine of some pages of RAM. What its guest writes while it runs is a script: one entry for each look at the log.
class FakeMigrationSource final : public migration::MigrationSource {
 public:
  static constexpr size_t kPageBytes = 4096;

  FakeMigrationSource(size_t page_count, SharedDisk* disk) : ram_(page_count * kPageBytes), disk_(disk) {
    for (size_t page = 0; page < std::min<size_t>(page_count, 8); page += 2) {
      write_page(page);
    }
  }

  // What the machine is
  std::string spec = "a machine";
  std::vector<std::pair<std::string, SealedImage>> boot_images;
  MachineState state;
  bool paused_by_user = false;
  // What its guest does
  std::vector<std::vector<size_t>> writes;    ///< Pages written before the nth look, while it runs.
  std::vector<size_t> writes_of_saving;       ///< Pages that saving writes.
  std::vector<size_t> writes_after_the_log;   ///< Pages written when nothing may write any more, and that nobody marks.
  std::function<Result<void>()> before_look;  ///< Whether the guest is still there.
  std::optional<Error> save_error;
  std::optional<Error> release_error;

  // What became of it
  [[nodiscard]] bool is_running() const { return !paused_; }
  [[nodiscard]] bool is_as_before() const { return paused_ == paused_by_user && !logging_ && throttle_percent_ == 0; }
  [[nodiscard]] bool is_left_to_user() const { return left_to_user_; }
  [[nodiscard]] bool logged_writes() const { return has_logged_; }
  [[nodiscard]] const std::vector<unsigned>& throttles() const { return throttles_; }

  void write_page(size_t page) {
    ++write_count_;
    std::memcpy(&ram_[page * kPageBytes], &write_count_, sizeof write_count_);
    ram_[page * kPageBytes + kPageBytes - 1] = std::byte{0xEE};
    written_.mark(PageRun{page, 1});
  }

  void clear_page(size_t page) {
    std::memset(&ram_[page * kPageBytes], 0, kPageBytes);
    written_.mark(PageRun{page, 1});
  }

  Result<std::string> spec_document() override { return spec; }
  std::vector<migration::LeavingImage> images() override {
    std::vector<migration::LeavingImage> images;
    for (const auto& [role, image] : boot_images) {
      images.push_back({role, &image});
    }
    return images;
  }
  [[nodiscard]] std::span<const std::byte> ram() override { return ram_; }
  [[nodiscard]] DirtyBitmap new_bitmap() override { return {*range(), kPageBytes}; }
  Result<void> start_write_log() override {
    written_.clear();
    logging_ = has_logged_ = true;
    return {};
  }
  Result<void> collect(DirtyBitmap& into) override {
    if (before_look) {
      TANDEM_TRY(before_look());
    }
    if (!paused_ && look_ < writes.size()) {
      for (const size_t page : writes[look_++]) {
        write_page(page);
      }
    }
    written_.harvest(into);
    if (paused_) {
      for (const size_t page : writes_after_the_log) {
        ram_[page * kPageBytes + 1] = std::byte{0x11};
      }
    }
    return {};
  }
  void stop_write_log() override { logging_ = false; }
  void throttle(unsigned percent) override {
    throttle_percent_ = percent;
    throttles_.push_back(percent);
  }
  Result<MachineState> pause_and_save() override {
    paused_ = true;
    for (const size_t page : writes_of_saving) {
      write_page(page);
    }
    if (save_error) {
      return std::unexpected(*save_error);
    }
    return state;
  }
  [[nodiscard]] bool is_paused_by_user() override { return paused_by_user; }
  void leave_to_user() override { left_to_user_ = true; }
  Result<void> resume_after_failure() override {
    paused_ = paused_by_user;
    return {};
  }
  [[nodiscard]] bool has_writable_disk() override { return disk_ != nullptr; }
  Result<void> release_disks() override {
    if (release_error) {
      return std::unexpected(*release_error);
    }
    if (disk_ != nullptr) {
      disk_->unlock(SharedDisk::Owner::kSource);
    }
    return {};
  }
  Result<void> reclaim_disks() override {
    if (disk_ != nullptr && !disk_->lock(SharedDisk::Owner::kSource)) {
      return fail(Errc::kBusy, "disk0: in use");
    }
    return {};
  }

 private:
  [[nodiscard]] std::optional<GuestRange> range() const { return GuestRange::create(GuestAddr(0), ram_.size()); }

  std::vector<std::byte> ram_;
  SharedDisk* disk_;
  DirtyBitmap written_{*range(), kPageBytes};
  uint64_t write_count_ = 0;
  size_t look_ = 0;
  bool paused_ = false;
  bool logging_ = false;
  bool has_logged_ = false;
  bool left_to_user_ = false;
  unsigned throttle_percent_ = 0;
  std::vector<unsigned> throttles_;
};

}  // namespace tandem::fakes
