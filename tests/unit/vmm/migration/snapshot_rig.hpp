// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vmm/migration/snapshot.hpp"
#include "vmm/migration/snapshot_format.hpp"
#include "vmm/migration/snapshot_writer.hpp"

namespace tandem::migration {

/// Bytes that look random, the same each time.
inline std::vector<std::byte> noise(size_t size_bytes, uint32_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  constexpr size_t kStep = sizeof(uint64_t);
  uint64_t value = seed;
  for (size_t offset = 0; offset < size_bytes; offset += kStep) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(bytes.data() + offset, &value, std::min(kStep, size_bytes - offset));
  }
  return bytes;
}

/// A machine to be saved, and a directory of the test's own for its snapshots.
class SnapshotRig : public testing::Test {
 protected:
  static constexpr uint64_t kRamBytes = 4 * kRamChunkBytes;
  static constexpr size_t kPageBytes = 4096;
  static constexpr GuestRange kRange = GuestRange::fixed(0x4000'0000, kRamBytes);

  SnapshotRig() : ram(kRamBytes), changed(kRange, kPageBytes) {
    // In memory where there is such a place: a save waits for the disk, and these tests save hundreds of times.
    std::string pattern = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir()) + "snapshot_test.XXXXXX";
    place_ = ::mkdtemp(pattern.data());
    const auto bytes = noise(3 * kPageBytes, 7);
    std::ranges::copy(bytes, ram.begin() + 5 * kPageBytes);                         // chunk 0, among zeros
    std::ranges::copy(noise(kRamChunkBytes, 8), ram.begin() + 2 * kRamChunkBytes);  // all of chunk 2
    ram.back() = std::byte{1};
    state = {{"vcpu0", {.kind = "kvm_vcpu", .version = 1, .payload = noise(900, 1)}},
             {"uart0", {.kind = "uart_pl011", .version = 1, .payload = noise(40, 2)}},
             {"rng0", StateRecord::none("virtio_rng")}};
    images.push_back({"kernel", sealed(noise(70'000, 3))});
    images.push_back({"initrd", sealed(noise(5000, 4))});
  }
  ~SnapshotRig() override { std::filesystem::remove_all(place_); }

  static SealedImage sealed(const std::vector<std::byte>& bytes) {
    auto writer = SealedImageWriter::create("test");
    EXPECT_TRUE(writer && writer->append(bytes));
    return std::move(*writer).seal().value();
  }

  [[nodiscard]] std::string path(const std::string& name) const { return place_ + "/" + name; }

  /// Writes to the machine's RAM, as it runs.
  void change(uint64_t offset, size_t size_bytes, uint32_t seed) {
    std::ranges::copy(noise(size_bytes, seed), ram.begin() + static_cast<ptrdiff_t>(offset));
    changed.mark(GuestRange::create(GuestAddr(kRange.base().value() + offset), size_bytes).value());
  }

  /// Puts all parts but the last step.
  Result<SnapshotWriter> write(const std::string& name, const Snapshot* base, Replace replace, ProgressSink& progress) {
    SnapshotWriter writer =
        TANDEM_TRY(SnapshotWriter::create({.directory = path(name), .replace = replace, .base = base}));
    TANDEM_TRY(writer.put_spec(spec));
    TANDEM_TRY(writer.put_state(state));
    for (const auto& [role, image] : images) {
      TANDEM_TRY(writer.put_image(role, image));
    }
    TANDEM_TRY(writer.put_ram(ram, base == nullptr ? nullptr : &changed, progress));
    return writer;
  }
  Result<Checksum> save(const std::string& name, const Snapshot* base = nullptr, Replace replace = Replace::kNo) {
    SilentProgress progress;
    SnapshotWriter writer = TANDEM_TRY(write(name, base, replace, progress));
    const Checksum identity = TANDEM_TRY(writer.commit());
    changed.clear();
    return identity;
  }
  /// Saves the difference to the snapshot `base`.
  Result<Checksum> save_difference(const std::string& name, const std::string& base) {
    const Snapshot snapshot = TANDEM_TRY(Snapshot::open(path(base)));
    return save(name, &snapshot);
  }

  /// Makes snapshots "0" to "`length` - 1", each the difference to the one before.
  void make_chain(size_t length) {
    ASSERT_TRUE(save("0"));
    ASSERT_TRUE(save_difference("1", "0"));
    SnapshotManifest manifest = Snapshot::open(path("1"))->chain()[0].manifest();
    for (size_t index = 2; index < length; ++index) {
      const std::string before = std::to_string(index - 1);
      const std::string identity = content(before + "/manifest");
      manifest.base = BaseEntry{.path = "../" + before, .manifest = checksum_of(std::as_bytes(std::span(identity)))};
      std::filesystem::copy(path("1"), path(std::to_string(index)));
      overwrite(std::to_string(index) + "/manifest", encode_manifest(manifest).value());
    }
  }

  [[nodiscard]] Result<void> verify(const std::string& name) const {
    const Snapshot snapshot = TANDEM_TRY(Snapshot::open(path(name)));
    SilentProgress progress;
    return snapshot.verify(progress);
  }

  /// RAM as a lazy restore has it.
  [[nodiscard]] static std::vector<std::byte> mapped(const Snapshot& snapshot) {
    const auto ram = snapshot.map_ram(kRange);
    EXPECT_TRUE(ram);
    return ram ? std::vector<std::byte>(ram->bytes().begin(), ram->bytes().end()) : std::vector<std::byte>();
  }
  /// RAM as an eager restore has it.
  [[nodiscard]] static std::vector<std::byte> read(const Snapshot& snapshot) {
    std::vector<std::byte> bytes(kRamBytes);
    SilentProgress progress;
    EXPECT_TRUE(snapshot.read_ram(bytes, progress));
    return bytes;
  }

  [[nodiscard]] std::string content(const std::string& file) const {
    std::ifstream stream(path(file), std::ios::binary);
    return {std::istreambuf_iterator(stream), {}};
  }
  void overwrite(const std::string& file, const std::string& bytes) const {
    std::ofstream(path(file), std::ios::binary | std::ios::trunc) << bytes;
  }
  /// Changes one bit of a file in place.
  void flip(const std::string& file, size_t offset, unsigned bit) const {
    std::fstream stream(path(file), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(offset));
    const int byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(static_cast<unsigned>(byte) ^ (1U << bit)));
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& directory = "") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path(directory))) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  std::vector<std::byte> ram;
  DirtyBitmap changed;
  std::string spec = R"({"name":"vm1","vcpus":4})";
  MachineState state;
  struct Image {
    std::string role;
    SealedImage image;
  };
  std::vector<Image> images;

 private:
  std::string place_;
};

}  // namespace tandem::migration
