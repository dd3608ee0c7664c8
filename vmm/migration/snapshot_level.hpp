// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"
#include "vmm/migration/ram_file.hpp"
#include "vmm/migration/saved_image.hpp"
#include "vmm/migration/snapshot_manifest.hpp"

namespace tandem::migration {

/// One directory of a snapshot's chain: a full snapshot, or a difference to another one. Its files are reached through the
/// directory as it was opened, never through symbolic links, and nothing but regular files is opened.
class SnapshotLevel {
 public:
  /// Opens the directory `path`, as seen from the directory `around` (AT_FDCWD: as the user sees it), and reads its manifest.
  /// @param shown_path  what errors call it.
  static Result<SnapshotLevel> open(int around, const std::string& path, std::string shown_path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int directory() const { return directory_.get(); }
  [[nodiscard]] const SnapshotManifest& manifest() const { return manifest_; }
  /// Checksum of all bytes of the manifest, and so of the whole directory.
  [[nodiscard]] const Checksum& identity() const { return identity_; }

  /// A file that the manifest describes, whole.
  /// @errors  Errc::kCorrupt: it has another length or checksum.
  Result<std::vector<std::byte>> read_file(const char* name, const FileEntry& entry) const;

  /// The RAM, its form checked but not its bytes.
  Result<RamFile> open_ram() const;

  /// A boot image that is stored in this directory, checked.
  Result<SavedImage> load_image(const ImageEntry& entry) const;

  /// Checks that a boot image's file is there and as long as it must be.
  Result<void> check_image_form(const ImageEntry& entry) const;

 private:
  SnapshotLevel(std::string path, UniqueFd directory) : path_(std::move(path)), directory_(std::move(directory)) {}
  Result<RegularFile> open_file(const std::string& name) const;
  Result<RegularFile> open_image(const ImageEntry& entry) const;
  Result<void> read_manifest();

  std::string path_;
  UniqueFd directory_;
  SnapshotManifest manifest_;
  Checksum identity_;
};

}  // namespace tandem::migration
