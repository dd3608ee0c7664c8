// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/ram_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/lib/bits/bits.hpp"

namespace tandem::migration {
namespace {

constexpr std::string_view kMarkMagic = "TANDEM-RAM";
constexpr size_t kMarkBytes = 64;
using Mark = std::array<std::byte, kMarkBytes>;

/// What is behind the bytes of RAM: a magic word, their number, and the checksum of the `ram.sums` that describes them.
Mark mark_of(uint64_t ram_bytes, const Checksum& sums_checksum) {
  constexpr size_t kLengthAt = 16;
  constexpr size_t kChecksumAt = 32;
  Mark mark{};
  std::memcpy(mark.data(), kMarkMagic.data(), kMarkMagic.size());
  store_le(std::span(mark).subspan(kLengthAt), ram_bytes);
  std::ranges::copy(sums_checksum.bytes(), mark.begin() + kChecksumAt);
  return mark;
}

Result<void> write_at(int fd, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail_errno("write");
    }
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

/// @pre bytes.size() > 8.
bool is_zero(std::span<const std::byte> bytes) {
  constexpr size_t kStep = 8;
  uint64_t first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  return first == 0 && std::memcmp(bytes.data(), bytes.data() + kStep, bytes.size() - kStep) == 0;
}

/// Writes the units of `run` that are not zeros.
/// @return  whether there was one.
Result<bool> write_units(int fd, std::span<const std::byte> ram, PageSet::Run run) {
  bool wrote = false;
  const uint64_t end = run.offset + run.size_bytes;
  for (uint64_t at = run.offset; at < end;) {
    uint64_t stop = at;
    while (stop < end && !is_zero(ram.subspan(stop, kRamUnitBytes))) {
      stop += kRamUnitBytes;
    }
    if (stop > at) {
      TANDEM_TRY(write_at(fd, at, ram.subspan(at, stop - at)));
      wrote = true;
    }
    at = stop + kRamUnitBytes;
  }
  return wrote;
}

/// The checksum of a chunk of the file that holds only some pages of RAM.
Checksum checksum_of_held(std::span<const std::byte> ram, PageSet::Run chunk, const PageSet& held) {
  static constexpr std::array<std::byte, kRamUnitBytes> kZeros{};
  ChecksumStream stream;
  for (uint64_t at = chunk.offset; at < chunk.offset + chunk.size_bytes; at += kRamUnitBytes) {
    const bool is_held = held.has(at / held.page_bytes());
    stream.append(is_held ? ram.subspan(at, kRamUnitBytes) : std::span<const std::byte>(kZeros));
  }
  return stream.checksum();
}

/// Writes one chunk. @return its checksum.
Result<Checksum> write_chunk(int fd, std::span<const std::byte> ram, PageSet::Run chunk, const PageSet* held) {
  bool wrote = false;
  PageSet::Run rest = chunk;
  while (rest.size_bytes > 0) {
    const auto run = held == nullptr ? rest : held->first_run(rest).value_or(PageSet::Run{.offset = rest.offset});
    if (run.size_bytes == 0) {
      break;
    }
    wrote = TANDEM_TRY(write_units(fd, ram, run)) || wrote;
    const uint64_t end = run.offset + run.size_bytes;
    rest = {.offset = end, .size_bytes = rest.offset + rest.size_bytes - end};
  }
  if (!wrote) {
    return zero_chunk_checksum();
  }
  return held == nullptr ? checksum_of(ram.subspan(chunk.offset, chunk.size_bytes))
                         : checksum_of_held(ram, chunk, *held);
}

}  // namespace

Result<RamSums> write_ram_file(int fd, std::span<const std::byte> ram, const PageSet* held, ProgressSink& progress) {
  TANDEM_ASSERT(ram.size() % kRamChunkBytes == 0, "RAM consists of whole chunks");
  if (::ftruncate(fd, static_cast<off_t>(ram.size())) != 0) {
    return fail_errno("make it {} bytes long", ram.size());
  }
  RamSums sums;
  if (held != nullptr) {
    sums.held = *held;
  }
  ProgressReport report{.phase = "writing RAM", .total_bytes = ram.size()};
  TANDEM_TRY(progress.report(report));
  for (uint64_t offset = 0; offset < ram.size(); offset += kRamChunkBytes) {
    sums.chunks.push_back(TANDEM_TRY(write_chunk(fd, ram, {.offset = offset, .size_bytes = kRamChunkBytes}, held)));
    report.done_bytes = offset + kRamChunkBytes;
    TANDEM_TRY(progress.report(report));
  }
  return sums;
}

Result<void> write_ram_mark(int fd, uint64_t ram_bytes, const Checksum& sums_checksum) {
  return write_at(fd, ram_bytes, mark_of(ram_bytes, sums_checksum));
}

Result<RamFile> RamFile::create(RegularFile file, RamSums sums, const Checksum& sums_checksum) {
  RamFile ram(std::move(file), std::move(sums));
  const std::string& label = ram.file_.label();
  if (const uint64_t due = ram.ram_bytes() + kMarkBytes; ram.file_.size() != due) {
    return fail(Errc::kCorrupt, "{}: has {} bytes where {} are due", label, ram.file_.size(), due);
  }
  Mark mark{};
  const size_t count = TANDEM_TRY(ram.file_.read_at(ram.ram_bytes(), mark));
  if (count != mark.size() || mark != mark_of(ram.ram_bytes(), sums_checksum)) {
    return fail(Errc::kCorrupt, "{}: is not the RAM of this snapshot", label);
  }
  return ram;
}

Result<RamFile::Chunk> RamFile::read_chunk(size_t index, std::span<std::byte> out) const {
  const uint64_t offset = index * kRamChunkBytes;
  const bool hole = is_hole(offset, kRamChunkBytes);
  if (!hole) {
    TANDEM_TRY(read(offset, out));
  }
  if ((hole ? zero_chunk_checksum() : checksum_of(out)) != sums_.chunks[index]) {
    return fail(Errc::kCorrupt, "{}: damaged in the {} bytes from offset {}", file_.label(), kRamChunkBytes, offset);
  }
  return hole ? Chunk::kZeros : Chunk::kRead;
}

Result<void> RamFile::read(uint64_t offset, std::span<std::byte> out) const {
  if (TANDEM_TRY(file_.read_at(offset, out)) != out.size()) {
    return fail(Errc::kCorrupt, "{}: became shorter", file_.label());
  }
  return {};
}

bool RamFile::is_hole(uint64_t offset, uint64_t size_bytes) const {
  // Where a file system does not know, it calls all of it data.
  const off_t next = ::lseek(file_.fd(), static_cast<off_t>(offset), SEEK_DATA);
  return next >= 0 && static_cast<uint64_t>(next) >= offset + size_bytes && offset + size_bytes <= file_.size();
}

}  // namespace tandem::migration
