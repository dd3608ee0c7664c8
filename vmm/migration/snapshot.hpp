// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/lib/guest_memory/guest_ram.hpp"
#include "vmm/lib/progress/progress.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/machine_state.hpp"
#include "vmm/migration/ram_file.hpp"
#include "vmm/migration/saved_image.hpp"
#include "vmm/migration/snapshot_level.hpp"

namespace tandem::migration {

/// A saved machine: a directory, and if that is a difference the chain of directories behind it, down to a full snapshot.
class Snapshot {
 public:
  /// Opens `directory` and the chain behind it, and checks everything but the bytes of RAM and of boot images.
  /// @param elsewhere  directories in which bases are looked for that are not where their differences say.
  /// @errors  Errc::kCorrupt, Errc::kUnsupported, or as the files are; one line that names the file.
  static Result<Snapshot> open(const std::string& directory, std::span<const std::string> elsewhere = {});

  /// The machine's description, in machine_spec_json's form, as it was given to the writer.
  [[nodiscard]] const std::string& spec_document() const { return spec_document_; }
  [[nodiscard]] const MachineState& state() const { return state_; }
  [[nodiscard]] uint64_t ram_bytes() const { return levels_.front().manifest().ram_bytes; }
  /// What differences to this snapshot name it by.
  [[nodiscard]] const Checksum& identity() const { return levels_.front().identity(); }
  /// This snapshot's own directory first, the full snapshot last.
  [[nodiscard]] std::span<const SnapshotLevel> chain() const { return levels_; }
  /// The RAM files of the chain, in its order.
  [[nodiscard]] std::span<const RamFile> ram_files() const { return ram_; }

  /// All boot images, read and checked.
  Result<std::vector<SavedImage>> load_images() const;
  /// The boot image of the chain with this checksum, and where it is; nothing if the chain has none.
  struct StoredImage {
    const SnapshotLevel* level;
    const ImageEntry* entry;
  };
  [[nodiscard]] std::optional<StoredImage> find_image(const Checksum& checksum) const;

  /// RAM that reads the full snapshot's file lazily, with the pages of the differences in their place. Bytes are not checked.
  /// @pre  range.size() == ram_bytes().
  Result<GuestRam> map_ram(GuestRange range) const;

  /// Reads and checks all of RAM, chain and all.
  /// @pre     out.size() == ram_bytes(), and all of it is zero.
  /// @errors  Errc::kCorrupt: a byte is not what it was.
  Result<void> read_ram(std::span<std::byte> out, ProgressSink& progress) const;

  /// Checks every byte of all directories of the chain.
  Result<void> verify(ProgressSink& progress) const;

 private:
  Snapshot() = default;
  Result<void> open_bases(std::span<const std::string> elsewhere);
  Result<SnapshotLevel> open_base(const SnapshotLevel& of, std::span<const std::string> elsewhere) const;
  Result<void> check_is_new(const SnapshotLevel& level) const;
  Result<void> read_records();
  Result<void> scan_ram(std::span<std::byte> out, ProgressSink& progress, std::string_view phase) const;

  std::vector<SnapshotLevel> levels_;
  std::vector<RamFile> ram_;
  std::string spec_document_;
  MachineState state_;
};

}  // namespace tandem::migration
