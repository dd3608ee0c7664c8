// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "vmm/migration/ram_file.hpp"
#include "vmm/migration/saved_image.hpp"
#include "vmm/migration/snapshot_format.hpp"
#include "vmm/migration/snapshot_state.hpp"

namespace tandem::migration {
namespace {

namespace fs = std::filesystem;

Result<void> write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail_errno("write");
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<fs::path> without_links(const std::string& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(path, error);
  if (error) {
    return std::unexpected(Error::from_errno(path, error.value()));
  }
  return found;
}

/// The way from the new directory to that of its base, as the disk has both: the shortest one without symbolic links.
Result<std::string> way_to_base(const std::string& directory, const Snapshot& base) {
  const fs::path from = TANDEM_TRY(without_links(directory));
  for (const SnapshotLevel& level : base.chain()) {
    if (from == TANDEM_TRY(without_links(level.path()))) {
      return fail(Errc::kInvalidArgument, "{}: is the base, or one of its own: a difference needs them to stay",
                  directory);
    }
  }
  return TANDEM_TRY(without_links(base.chain().front().path())).lexically_relative(from).string();
}

PageSet page_set_of(const DirtyBitmap& bitmap) {
  PageSet pages(bitmap.range().size(), bitmap.page_bytes());
  size_t page = 0;
  while (const auto run = bitmap.next_run(page)) {
    pages.add(run->first, run->count);
    page = run->first + run->count;
  }
  return pages;
}

}  // namespace

Result<SnapshotWriter> SnapshotWriter::create(const Target& target) {
  std::optional<BaseEntry> base;
  if (target.base != nullptr) {
    if (target.base->chain().size() == kMaxChainLength) {
      return fail(Errc::kOutOfRange, "{}: has {} snapshots behind one another; no more are read back",
                  target.base->chain().front().path(), kMaxChainLength);
    }
    base =
        BaseEntry{.path = TANDEM_TRY(way_to_base(target.directory, *target.base)), .manifest = target.base->identity()};
  }
  SnapshotWriter writer(TANDEM_TRY(StagedDirectory::create(target.directory, target.replace)), target.base);
  writer.manifest_.base = std::move(base);
  return writer;
}

Result<FileEntry> SnapshotWriter::write_file(const std::string& name, std::span<const std::byte> content) {
  UniqueFd file = TANDEM_TRY(directory_.create_file(name));
  TANDEM_TRY(with_context(write_all(file.get(), content), fmt::format("{}/{}", directory_.staged_path(), name)));
  TANDEM_TRY(directory_.finish_file(std::move(file), name));
  return FileEntry{.size_bytes = content.size(), .checksum = checksum_of(content)};
}

Result<void> SnapshotWriter::put_spec(std::string_view document) {
  if (document.size() > kMaxSpecFileBytes) {
    return fail(Errc::kOutOfRange, "description of {} bytes; at most {} are read back", document.size(),
                kMaxSpecFileBytes);
  }
  manifest_.spec = TANDEM_TRY(write_file(kSpecName, std::as_bytes(std::span(document))));
  return {};
}

Result<void> SnapshotWriter::put_state(const MachineState& state) {
  manifest_.state = TANDEM_TRY(write_file(kStateName, TANDEM_TRY(encode_machine_state(state))));
  return {};
}

bool SnapshotWriter::has_image(const FileEntry& file) const {
  return (base_ != nullptr && base_->find_image(file.checksum)) ||
         std::ranges::find(manifest_.images, file, &ImageEntry::file) != manifest_.images.end();
}

Result<void> SnapshotWriter::put_image(std::string_view role, const SealedImage& image) {
  const FileEntry file{.size_bytes = image.size(), .checksum = TANDEM_TRY(checksum_of_image(image))};
  const bool stored = !has_image(file);
  if (stored) {
    const MappedRegion mapping = image.size() == 0 ? MappedRegion() : TANDEM_TRY(image.map());
    TANDEM_TRY(write_file(image_file_name(file.checksum), mapping.bytes()));
  }
  manifest_.images.push_back({.role = std::string(role), .file = file, .stored = stored});
  return {};
}

Result<void> SnapshotWriter::put_ram(std::span<const std::byte> ram, const DirtyBitmap* changed,
                                     ProgressSink& progress) {
  TANDEM_ASSERT((base_ == nullptr) == (changed == nullptr), "a difference is what changed since its base");
  if (base_ != nullptr && base_->ram_bytes() != ram.size()) {
    return fail(Errc::kInvalidArgument, "{}: has RAM of {} bytes, this machine {}", base_->chain().front().path(),
                base_->ram_bytes(), ram.size());
  }
  std::optional<PageSet> held;
  if (changed != nullptr) {
    TANDEM_ASSERT(changed->range().size() == ram.size(), "what changed is told of this RAM");
    held = page_set_of(*changed);
    manifest_.page_bytes = held->page_bytes();
  }
  const std::string path = fmt::format("{}/{}", directory_.staged_path(), kRamName);
  UniqueFd file = TANDEM_TRY(directory_.create_file(kRamName));
  const RamSums sums =
      TANDEM_TRY(with_context(write_ram_file(file.get(), ram, held ? &*held : nullptr, progress), path));
  manifest_.ram_bytes = ram.size();
  manifest_.ram_sums = TANDEM_TRY(write_file(kRamSumsName, encode_ram_sums(sums)));
  TANDEM_TRY(with_context(write_ram_mark(file.get(), ram.size(), manifest_.ram_sums.checksum), path));
  return directory_.finish_file(std::move(file), kRamName);
}

Result<Checksum> SnapshotWriter::commit() {
  const std::string content = TANDEM_TRY(encode_manifest(manifest_));
  const FileEntry manifest = TANDEM_TRY(write_file(kManifestName, std::as_bytes(std::span(content))));
  TANDEM_TRY(directory_.publish());
  return manifest.checksum;
}

}  // namespace tandem::migration
