// SPDX-License-Identifier: Apache-2.0
#include <sys/fsuid.h>
#include <unistd.h>

#include "tests/unit/vmm/migration/snapshot_rig.hpp"
#include "vmm/migration/snapshot.hpp"

namespace tandem::migration {
namespace {

/// Snapshots that something happened to.
class SnapshotDamageTest : public SnapshotRig {
 protected:
  void expect_refused(const std::string& why) {
    const auto snapshot = Snapshot::open(path("one"));
    ASSERT_FALSE(snapshot) << why;
    EXPECT_TRUE(snapshot.error().message().starts_with(path("one"))) << why << ": " << snapshot.error().message();
  }
  [[nodiscard]] static std::vector<std::string> files() { return {"manifest", "spec", "state", "ram", "ram.sums"}; }
};

TEST_F(SnapshotDamageTest, EveryFlippedBitOfManifestAndRecordsIsRefused) {
  ASSERT_TRUE(save("one"));
  for (const std::string name : {"manifest", "spec", "state", "ram.sums"}) {
    const std::string file = "one/" + name;
    const std::string good = content(file);
    for (size_t index = 0; index < good.size() * 2; ++index) {
      const auto bit = static_cast<unsigned>(index % 2 == 0 ? index / 2 % 8 : (index / 2 + 4) % 8);
      flip(file, index / 2, bit);
      expect_refused(fmt::format("{}: bit {} of byte {}", name, bit, index / 2));
      flip(file, index / 2, bit);
    }
    ASSERT_EQ(content(file), good);
  }
  EXPECT_TRUE(Snapshot::open(path("one")));
}

TEST_F(SnapshotDamageTest, EveryFlippedBitOfRamsMarkIsRefused) {
  ASSERT_TRUE(save("one"));
  for (size_t offset = kRamBytes; offset < kRamBytes + 64; ++offset) {
    flip("one/ram", offset, offset % 8);
    expect_refused(fmt::format("byte {}", offset));
    flip("one/ram", offset, offset % 8);
  }
}

TEST_F(SnapshotDamageTest, SampledFlipsOfRamAreFoundByVerify) {
  ASSERT_TRUE(save("one"));
  for (size_t index = 0; index < 20; ++index) {
    const size_t offset = index * 104'729 * 37 % kRamBytes;  // holes too
    flip("one/ram", offset, index % 8);
    const auto verified = verify("one");
    ASSERT_FALSE(verified) << offset;
    EXPECT_TRUE(verified.error().message().starts_with(path("one/ram") + ": damaged in the 2097152 bytes"));
    flip("one/ram", offset, index % 8);
  }
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotDamageTest, AFlipOfRamIsFoundByAnEagerRestore) {
  ASSERT_TRUE(save("one"));
  flip("one/ram", kRamBytes - 1, 7);
  std::vector<std::byte> out(kRamBytes);
  SilentProgress progress;
  EXPECT_EQ(Snapshot::open(path("one"))->read_ram(out, progress).error().code(), Errc::kCorrupt);
}

TEST_F(SnapshotDamageTest, AFlipInAPageThatADifferenceDoesNotHoldIsFound) {
  ASSERT_TRUE(save("full"));
  change(kPageBytes, 10, 6);
  ASSERT_TRUE(save_difference("second", "full"));
  flip("second/ram", 2 * kPageBytes, 3);
  EXPECT_FALSE(verify("second"));
  EXPECT_TRUE(verify("full"));
}

TEST_F(SnapshotDamageTest, DamageOfABaseIsFound) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save_difference("second", "full"));
  flip("full/ram", 0, 0);
  EXPECT_FALSE(verify("second"));
  flip("full/ram", 0, 0);
  flip("full/state", 20, 0);
  EXPECT_FALSE(verify("second"));
}

TEST_F(SnapshotDamageTest, DamageOfAnImageIsFound) {
  ASSERT_TRUE(save("one"));
  const std::string image = "one/" + names("one").front();
  ASSERT_TRUE(image.starts_with("one/image-"));
  flip(image, 1000, 1);
  EXPECT_FALSE(verify("one"));
  EXPECT_EQ(Snapshot::open(path("one"))->load_images().error().message(), path(image) + ": is damaged");
  std::filesystem::resize_file(path(image), 10);
  expect_refused("truncated image");
  std::filesystem::remove(path(image));
  expect_refused("no image");
}

TEST_F(SnapshotDamageTest, EveryTruncationOfSmallFilesIsRefused) {
  ASSERT_TRUE(save("one"));
  for (const std::string name : {"manifest", "spec", "state", "ram.sums"}) {
    const std::string good = content("one/" + name);
    for (size_t length = 0; length < good.size(); ++length) {
      overwrite("one/" + name, good.substr(0, length));
      expect_refused(fmt::format("{} cut to {}", name, length));
    }
    overwrite("one/" + name, good + '\0');
    expect_refused(name + " longer");
    overwrite("one/" + name, good);
  }
}

TEST_F(SnapshotDamageTest, TruncationOfRamAtEveryPageIsRefused) {
  ASSERT_TRUE(save("one"));
  for (uint64_t length = kRamBytes; length > 0; length -= kPageBytes) {
    std::filesystem::resize_file(path("one/ram"), length);
    expect_refused(fmt::format("RAM cut to {}", length));
  }
}

TEST_F(SnapshotDamageTest, AMissingFileIsNamed) {
  for (const std::string& name : files()) {
    ASSERT_TRUE(save("one", nullptr, Replace::kYes));
    std::filesystem::rename(path("one/" + name), path("kept"));
    EXPECT_EQ(Snapshot::open(path("one")).error().message(), path("one/" + name) + ": No such file or directory");
    std::filesystem::rename(path("kept"), path("one/" + name));
  }
}

TEST_F(SnapshotDamageTest, WhatIsNoRegularFileIsNotOpened) {
  ASSERT_TRUE(save("one"));
  for (const std::string& name : files()) {
    const std::string file = path("one/" + name);
    std::filesystem::rename(file, path("kept"));
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(Snapshot::open(path("one")).error().message(), file + ": is a FIFO; a regular file is needed");
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);
    EXPECT_EQ(Snapshot::open(path("one")).error().message(), file + ": is a directory; a regular file is needed");
    std::filesystem::remove(file);
    std::filesystem::create_symlink(path("kept"), file);
    EXPECT_EQ(Snapshot::open(path("one")).error().message(), file + ": is a symbolic link; a regular file is needed");
    std::filesystem::remove(file);
    std::filesystem::rename(path("kept"), file);
  }
}

TEST_F(SnapshotDamageTest, WhatIsNoDirectoryIsNotOpened) {
  overwrite("file", "x");
  EXPECT_EQ(Snapshot::open(path("file")).error().message(), path("file") + ": Not a directory");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(Snapshot::open(path("fifo")).error().message(), path("fifo") + ": Not a directory");
  EXPECT_EQ(Snapshot::open(path("none")).error().message(), path("none") + ": No such file or directory");
  EXPECT_EQ(Snapshot::open("").error().code(), Errc::kNotFound);
}

TEST_F(SnapshotDamageTest, FilesOfAnotherVmAreRefused) {
  ASSERT_TRUE(save("one"));
  change(0, 4000, 77);
  spec += " ";
  state[0].record.payload[0] ^= std::byte{1};
  ASSERT_TRUE(save("two"));
  for (const std::string name : {"spec", "state", "ram", "ram.sums"}) {
    std::filesystem::rename(path("one/" + name), path("kept"));
    std::filesystem::copy(path("two/" + name), path("one/" + name));
    expect_refused("the other's " + name);
    std::filesystem::rename(path("kept"), path("one/" + name));
  }
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotDamageTest, AFileWithoutPermissionIsNamed) {
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(save("one"));
  std::filesystem::permissions(path(""), std::filesystem::perms::all);
  std::filesystem::permissions(path("one"), std::filesystem::perms::all);
  std::filesystem::permissions(path("one/manifest"), std::filesystem::perms::none);
  const auto before = static_cast<uid_t>(::setfsuid(kNobody));  // root may read everything; of others this asks nothing
  const auto snapshot = Snapshot::open(path("one"));
  ::setfsuid(before);
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code(), Errc::kPermission) << snapshot.error().message();
}

TEST_F(SnapshotDamageTest, AHugeManifestIsNotRead) {
  ASSERT_TRUE(save("one"));
  std::filesystem::resize_file(path("one/manifest"), uint64_t{1} << 40);
  EXPECT_EQ(Snapshot::open(path("one")).error().message(),
            path("one/manifest") + ": has 1099511627776 bytes; at most 65536 are read");
}

TEST_F(SnapshotDamageTest, ASnapshotThatNamesItselfAsItsBaseIsRefused) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save_difference("one", "full"));
  SnapshotManifest manifest = Snapshot::open(path("one"))->chain()[0].manifest();
  manifest.base->path = ".";
  overwrite("one/manifest", encode_manifest(manifest).value());
  expect_refused("base is itself");
}

TEST_F(SnapshotDamageTest, ABaseOfAnotherSizeIsRefused) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save_difference("one", "full"));
  SnapshotManifest manifest = Snapshot::open(path("one"))->chain()[0].manifest();
  manifest.ram_bytes *= 2;
  overwrite("one/manifest", encode_manifest(manifest).value());
  expect_refused("base with half the RAM");
}

TEST_F(SnapshotDamageTest, AChainLongerThanTheBoundIsRefused) {
  make_chain(kMaxChainLength + 1);
  const auto snapshot = Snapshot::open(path(std::to_string(kMaxChainLength)));
  ASSERT_FALSE(snapshot);
  EXPECT_TRUE(snapshot.error().message().ends_with("more than 64 snapshots behind one another"));
}

}  // namespace
}  // namespace tandem::migration
