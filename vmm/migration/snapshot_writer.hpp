// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/lib/guest_memory/dirty_bitmap.hpp"
#include "vmm/lib/progress/progress.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/sealed_image/sealed_image.hpp"
#include "vmm/lib/state/machine_state.hpp"
#include "vmm/migration/snapshot.hpp"
#include "vmm/migration/snapshot_manifest.hpp"
#include "vmm/migration/staged_directory.hpp"

namespace tandem::migration {

/// Writes a snapshot. Call each `put_…` once, `put_image` for each image, then `commit`. Without `commit` nothing is left
/// behind, and a snapshot that was at the place stays as it was.
class SnapshotWriter {
 public:
  struct Target {
    std::string directory;
    Replace replace = Replace::kNo;
    /// What the snapshot is to be the difference to; lives as long as the writer. Null: a full snapshot.
    const Snapshot* base = nullptr;
  };
  /// @errors  Errc::kExists: there is something at the place. Errc::kInvalidArgument: the base is to be replaced.
  static Result<SnapshotWriter> create(const Target& target);

  /// The machine's description; any text.
  Result<void> put_spec(std::string_view document);
  Result<void> put_state(const MachineState& state);
  /// What a reset loads. A file is written only if the chain does not have the same image.
  Result<void> put_image(std::string_view role, const SealedImage& image);

  /// @param changed  the pages that changed since the base; given if and only if there is a base. It may hold more.
  /// @pre     ram.size() is a multiple of 2 MiB; nobody writes to it meanwhile; `changed` is of a range of that size.
  /// @errors  Errc::kInvalidArgument: the base's RAM has another size.
  Result<void> put_ram(std::span<const std::byte> ram, const DirtyBitmap* changed, ProgressSink& progress);

  /// Makes the snapshot the one at its place.
  /// @return  its identity, as `Snapshot::identity` will tell it.
  /// @pre     all parts were put.
  Result<Checksum> commit();

 private:
  SnapshotWriter(StagedDirectory directory, const Snapshot* base) : directory_(std::move(directory)), base_(base) {}
  Result<FileEntry> write_file(const std::string& name, std::span<const std::byte> content);
  [[nodiscard]] bool has_image(const FileEntry& file) const;

  StagedDirectory directory_;
  const Snapshot* base_;
  SnapshotManifest manifest_;
};

}  // namespace tandem::migration
