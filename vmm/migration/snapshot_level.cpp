// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_level.hpp"

#include <fcntl.h>

#include <span>

#include "vmm/migration/ram_sums.hpp"
#include "vmm/migration/snapshot_format.hpp"

namespace tandem::migration {

Result<SnapshotLevel> SnapshotLevel::open(int around, const std::string& path, std::string shown_path) {
  UniqueFd directory(::openat(around, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return fail_errno("{}", shown_path);
  }
  SnapshotLevel level(std::move(shown_path), std::move(directory));
  TANDEM_TRY(level.read_manifest());
  return level;
}

Result<RegularFile> SnapshotLevel::open_file(const std::string& name) const {
  return RegularFile::open_in(directory_.get(), name.c_str(), fmt::format("{}/{}", path_, name));
}

Result<void> SnapshotLevel::read_manifest() {
  const RegularFile file = TANDEM_TRY(open_file(kManifestName));
  if (file.size() > kMaxManifestBytes) {
    return fail(Errc::kCorrupt, "{}: has {} bytes; at most {} are read", file.label(), file.size(), kMaxManifestBytes);
  }
  std::string content(file.size(), '\0');
  content.resize(TANDEM_TRY(file.read_at(0, std::as_writable_bytes(std::span(content)))));
  manifest_ = TANDEM_TRY(with_context(decode_manifest(content), file.label()));
  identity_ = checksum_of(std::as_bytes(std::span(content)));
  return {};
}

Result<std::vector<std::byte>> SnapshotLevel::read_file(const char* name, const FileEntry& entry) const {
  const RegularFile file = TANDEM_TRY(open_file(name));
  if (file.size() != entry.size_bytes) {
    return fail(Errc::kCorrupt, "{}: has {} bytes where {} are due", file.label(), file.size(), entry.size_bytes);
  }
  std::vector<std::byte> content(entry.size_bytes);
  content.resize(TANDEM_TRY(file.read_at(0, content)));
  if (checksum_of(content) != entry.checksum) {
    return fail(Errc::kCorrupt, "{}: is damaged, or another snapshot's", file.label());
  }
  return content;
}

Result<RamFile> SnapshotLevel::open_ram() const {
  if (manifest_.ram_sums.size_bytes != ram_sums_bytes(manifest_.ram_bytes, manifest_.page_bytes)) {
    return fail(Errc::kCorrupt, "{}/{}: gives a length for {} that RAM of its size does not have", path_, kManifestName,
                kRamSumsName);
  }
  const auto content = TANDEM_TRY(read_file(kRamSumsName, manifest_.ram_sums));
  RamSums sums = TANDEM_TRY(with_context(decode_ram_sums(content, manifest_.ram_bytes, manifest_.page_bytes),
                                         fmt::format("{}/{}", path_, kRamSumsName)));
  return RamFile::create(TANDEM_TRY(open_file(kRamName)), std::move(sums), manifest_.ram_sums.checksum);
}

Result<RegularFile> SnapshotLevel::open_image(const ImageEntry& entry) const {
  RegularFile file = TANDEM_TRY(open_file(image_file_name(entry.file.checksum)));
  if (file.size() != entry.file.size_bytes) {
    return fail(Errc::kCorrupt, "{}: has {} bytes where {} are due", file.label(), file.size(), entry.file.size_bytes);
  }
  return file;
}

Result<void> SnapshotLevel::check_image_form(const ImageEntry& entry) const {
  TANDEM_TRY(open_image(entry));
  return {};
}

Result<SavedImage> SnapshotLevel::load_image(const ImageEntry& entry) const {
  const RegularFile file = TANDEM_TRY(open_image(entry));
  SealedImageWriter writer = TANDEM_TRY(SealedImageWriter::create(fmt::format("tandem-{}", entry.role).c_str()));
  writer.expect(entry.file.size_bytes);
  TANDEM_TRY(writer.append_file(file, 0, entry.file.size_bytes));
  SealedImage image = TANDEM_TRY(std::move(writer).seal());
  // Only what is sealed stays as it was checked.
  if (TANDEM_TRY(checksum_of_image(image)) != entry.file.checksum) {
    return fail(Errc::kCorrupt, "{}: is damaged", file.label());
  }
  return SavedImage{.role = entry.role, .image = std::move(image)};
}

}  // namespace tandem::migration
