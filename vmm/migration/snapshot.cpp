// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/migration/snapshot_format.hpp"
#include "vmm/migration/snapshot_state.hpp"

namespace tandem::migration {
namespace {

bool is_same_directory(const SnapshotLevel& one, const SnapshotLevel& other) {
  struct stat first{};
  struct stat second{};
  return ::fstat(one.directory(), &first) == 0 && ::fstat(other.directory(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Calls `use(run)` for each run of pages of `held` in `within`; nothing held: for all of it.
template <typename Use>
Result<void> for_each_run(const std::optional<PageSet>& held, PageSet::Run within, Use use) {
  if (!held) {
    return use(within);
  }
  const uint64_t end = within.offset + within.size_bytes;
  while (const auto run = held->first_run(within)) {
    TANDEM_TRY(use(*run));
    const uint64_t next = run->offset + run->size_bytes;
    within = {.offset = next, .size_bytes = end - next};
  }
  return {};
}

/// Puts the held pages of one chunk into `out`. @param bytes  of the chunk; empty: zeros.
void place_pages(const std::optional<PageSet>& held, PageSet::Run chunk, std::span<const std::byte> bytes,
                 std::span<std::byte> out) {
  if (!held && bytes.empty()) {
    return;  // the full snapshot comes first, and finds zeros: memory stays untouched
  }
  const auto placed = for_each_run(held, chunk, [&](PageSet::Run run) {
    const auto target = out.subspan(run.offset, run.size_bytes);
    if (bytes.empty()) {
      zero_bytes(target);
    } else {
      copy_bytes(bytes.subspan(run.offset - chunk.offset, run.size_bytes), target);
    }
    return Result<void>();
  });
  TANDEM_ASSERT(placed, "copying does not fail");
}

}  // namespace

Result<Snapshot> Snapshot::open(const std::string& directory, std::span<const std::string> elsewhere) {
  Snapshot snapshot;
  snapshot.levels_.push_back(TANDEM_TRY(SnapshotLevel::open(AT_FDCWD, directory, directory)));
  TANDEM_TRY(snapshot.open_bases(elsewhere));
  TANDEM_TRY(snapshot.read_records());
  return snapshot;
}

Result<void> Snapshot::open_bases(std::span<const std::string> elsewhere) {
  while (levels_.back().manifest().base) {
    const SnapshotLevel& of = levels_.back();
    if (levels_.size() == kMaxChainLength) {
      return fail(Errc::kCorrupt, "{}: more than {} snapshots behind one another", of.path(), kMaxChainLength);
    }
    SnapshotLevel base = TANDEM_TRY(open_base(of, elsewhere));
    TANDEM_TRY(check_is_new(base));
    if (base.manifest().ram_bytes != ram_bytes()) {
      return fail(Errc::kCorrupt, "{}: its base {} has RAM of another size", of.path(), base.path());
    }
    levels_.push_back(std::move(base));
  }
  return {};
}

Result<SnapshotLevel> Snapshot::open_base(const SnapshotLevel& of, std::span<const std::string> elsewhere) const {
  const BaseEntry& wanted = *of.manifest().base;
  auto base = SnapshotLevel::open(of.directory(), wanted.path, fmt::format("{}/{}", of.path(), wanted.path));
  if (base && base->identity() == wanted.manifest) {
    return base;
  }
  for (const std::string& path : elsewhere) {
    auto other = SnapshotLevel::open(AT_FDCWD, path, path);
    if (other && other->identity() == wanted.manifest) {
      return other;
    }
  }
  if (base) {
    return fail(Errc::kCorrupt, "{}: base: {} is another snapshot than it was", of.path(), base->path());
  }
  return with_context(std::move(base), fmt::format("{}: base", of.path()));
}

Result<void> Snapshot::check_is_new(const SnapshotLevel& level) const {
  if (std::ranges::any_of(levels_, [&](const SnapshotLevel& known) { return is_same_directory(known, level); })) {
    return fail(Errc::kCorrupt, "{}: is its own base", level.path());
  }
  return {};
}

Result<void> Snapshot::read_records() {
  const SnapshotLevel& own = levels_.front();
  const auto spec = TANDEM_TRY(own.read_file(kSpecName, own.manifest().spec));
  spec_document_.assign(reinterpret_cast<const char*>(spec.data()), spec.size());
  const auto records = TANDEM_TRY(own.read_file(kStateName, own.manifest().state));
  state_ = TANDEM_TRY(with_context(decode_machine_state(records), fmt::format("{}/{}", own.path(), kStateName)));
  for (const SnapshotLevel& level : levels_) {
    ram_.push_back(TANDEM_TRY(level.open_ram()));
  }
  for (const ImageEntry& image : own.manifest().images) {
    const auto stored = find_image(image.file.checksum);
    if (!stored || stored->entry->file != image.file) {
      return fail(Errc::kCorrupt, "{}: no snapshot of its chain has its {}", own.path(), image.role);
    }
    TANDEM_TRY(stored->level->check_image_form(*stored->entry));
  }
  return {};
}

std::optional<Snapshot::StoredImage> Snapshot::find_image(const Checksum& checksum) const {
  for (const SnapshotLevel& level : levels_) {
    for (const ImageEntry& image : level.manifest().images) {
      if (image.stored && image.file.checksum == checksum) {
        return StoredImage{.level = &level, .entry = &image};
      }
    }
  }
  return std::nullopt;
}

Result<std::vector<SavedImage>> Snapshot::load_images() const {
  std::vector<SavedImage> images;
  for (const ImageEntry& image : levels_.front().manifest().images) {
    const auto stored = find_image(image.file.checksum);
    TANDEM_ASSERT(stored, "opening the snapshot found it");
    images.push_back(TANDEM_TRY(stored->level->load_image(*stored->entry)));
    images.back().role = image.role;
  }
  return images;
}

Result<GuestRam> Snapshot::map_ram(GuestRange range) const {
  TANDEM_ASSERT(range.size() == ram_bytes(), "the machine has as much RAM as was saved");
  const RamFile& full = ram_.back();
  UniqueFd file(::fcntl(full.file().fd(), F_DUPFD_CLOEXEC, 0));
  if (!file) {
    return fail_errno("{}: dup", full.file().label());
  }
  GuestRam ram = TANDEM_TRY(with_context(GuestRam::create_private_file(range, std::move(file)), full.file().label()));
  for (size_t index = ram_.size() - 1; index-- > 0;) {  // older differences first: newer ones replace their pages
    const RamFile& difference = ram_[index];
    TANDEM_TRY(for_each_run(difference.sums().held, {.offset = 0, .size_bytes = ram_bytes()}, [&](PageSet::Run run) {
      return difference.read(run.offset, ram.bytes().subspan(run.offset, run.size_bytes));
    }));
  }
  return ram;
}

Result<void> Snapshot::read_ram(std::span<std::byte> out, ProgressSink& progress) const {
  TANDEM_ASSERT(out.size() == ram_bytes(), "the machine has as much RAM as was saved");
  return scan_ram(out, progress, "reading RAM");
}

Result<void> Snapshot::scan_ram(std::span<std::byte> out, ProgressSink& progress, std::string_view phase) const {
  std::vector<std::byte> buffer(kRamChunkBytes);
  ProgressReport report{.phase = phase, .total_bytes = ram_bytes() * ram_.size()};
  TANDEM_TRY(progress.report(report));
  for (size_t chunk = 0; chunk < ram_bytes() / kRamChunkBytes; ++chunk) {
    const PageSet::Run place{.offset = chunk * kRamChunkBytes, .size_bytes = kRamChunkBytes};
    for (size_t index = ram_.size(); index-- > 0;) {
      const auto read = TANDEM_TRY(ram_[index].read_chunk(chunk, buffer));
      if (!out.empty()) {
        place_pages(ram_[index].sums().held, place, read == RamFile::Chunk::kZeros ? std::span<std::byte>() : buffer,
                    out);
      }
      report.done_bytes += kRamChunkBytes;
    }
    TANDEM_TRY(progress.report(report));
  }
  return {};
}

Result<void> Snapshot::verify(ProgressSink& progress) const {
  for (const SnapshotLevel& level : levels_) {
    TANDEM_TRY(level.read_file(kSpecName, level.manifest().spec));
    TANDEM_TRY(level.read_file(kStateName, level.manifest().state));
    for (const ImageEntry& image : level.manifest().images) {
      if (image.stored) {
        TANDEM_TRY(level.load_image(image));
      }
    }
  }
  return scan_ram({}, progress, "checking RAM");
}

}  // namespace tandem::migration
