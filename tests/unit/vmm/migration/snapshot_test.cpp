// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot.hpp"

#include "tests/unit/vmm/migration/snapshot_rig.hpp"

namespace tandem::migration {
namespace {

std::vector<std::byte> bytes_of(const SealedImage& image) {
  std::vector<std::byte> bytes(image.size());
  EXPECT_TRUE(image.copy_to(bytes));
  return bytes;
}

class SnapshotTest : public SnapshotRig {};

TEST_F(SnapshotTest, GivesBackWhatWasSaved) {
  const auto identity = save("one");
  ASSERT_TRUE(identity) << identity.error().message();
  const auto snapshot = Snapshot::open(path("one"));
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_EQ(snapshot->identity(), *identity);
  EXPECT_EQ(snapshot->spec_document(), spec);
  EXPECT_EQ(snapshot->state(), state);
  EXPECT_EQ(snapshot->ram_bytes(), kRamBytes);
  EXPECT_EQ(snapshot->chain().size(), 1U);
  EXPECT_TRUE(mapped(*snapshot) == ram);
  EXPECT_TRUE(read(*snapshot) == ram);
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotTest, GivesBackTheBootImages) {
  ASSERT_TRUE(save("one"));
  const auto loaded = Snapshot::open(path("one"))->load_images();
  ASSERT_TRUE(loaded) << loaded.error().message();
  ASSERT_EQ(loaded->size(), 2U);
  EXPECT_EQ((*loaded)[0].role, "kernel");
  EXPECT_TRUE(bytes_of((*loaded)[0].image) == noise(70'000, 3));
  EXPECT_EQ((*loaded)[1].role, "initrd");
  EXPECT_TRUE(bytes_of((*loaded)[1].image) == noise(5000, 4));
}

TEST_F(SnapshotTest, TwoRolesShareAnImage) {
  images[1].image = sealed(noise(70'000, 3));
  ASSERT_TRUE(save("one"));
  const auto loaded = Snapshot::open(path("one"))->load_images();
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ((*loaded)[1].role, "initrd");
  EXPECT_EQ(names("one").size(), 6U);
}

TEST_F(SnapshotTest, ADifferenceRestoresWithoutAMerge) {
  ASSERT_TRUE(save("full"));
  change(kRamChunkBytes + 3 * kPageBytes, 2 * kPageBytes, 21);
  change(2 * kRamChunkBytes, kPageBytes, 22);
  const std::vector<std::byte> then = ram;
  ASSERT_TRUE(save_difference("second", "full"));
  change(2 * kRamChunkBytes, 100, 23);
  std::ranges::fill(std::span(ram).subspan(kRamChunkBytes + 3 * kPageBytes, kPageBytes), std::byte{0});
  changed.mark(PageRun{.first = kRamChunkBytes / kPageBytes + 3, .count = 1});
  ASSERT_TRUE(save_difference("third", "second"));

  const auto second = Snapshot::open(path("second"));
  const auto third = Snapshot::open(path("third"));
  ASSERT_TRUE(second && third);
  EXPECT_EQ(third->chain().size(), 3U);
  EXPECT_TRUE(mapped(*second) == then);
  EXPECT_TRUE(read(*second) == then);
  EXPECT_TRUE(mapped(*third) == ram);
  EXPECT_TRUE(read(*third) == ram);
  EXPECT_TRUE(verify("third"));
}

TEST_F(SnapshotTest, ADifferenceOfLargerPagesRestores) {
  ASSERT_TRUE(save("full"));
  changed = DirtyBitmap(kRange, 16384);
  change(kRamChunkBytes + 5 * kPageBytes, 10, 31);
  ASSERT_TRUE(save_difference("second", "full"));
  const auto second = Snapshot::open(path("second"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->chain()[0].manifest().page_bytes, 16384U);
  EXPECT_TRUE(mapped(*second) == ram && read(*second) == ram);
}

TEST_F(SnapshotTest, ADifferenceWithNothingChangedRestores) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save_difference("second", "full"));
  EXPECT_TRUE(mapped(*Snapshot::open(path("second"))) == ram);
}

TEST_F(SnapshotTest, AChainHasEachBootImageOnce) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save_difference("second", "full"));
  ASSERT_TRUE(save_difference("third", "second"));
  EXPECT_EQ(names("third"), (std::vector<std::string>{"manifest", "ram", "ram.sums", "spec", "state"}));
  const auto loaded = Snapshot::open(path("third"))->load_images();
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_TRUE(bytes_of(loaded->at(0).image) == noise(70'000, 3));
}

TEST_F(SnapshotTest, AChainMayMoveAsAWhole) {
  std::filesystem::create_directory(path("a"));
  ASSERT_TRUE(save("a/full"));
  ASSERT_TRUE(save_difference("a/second", "a/full"));
  std::filesystem::rename(path("a"), path("b"));
  const auto snapshot = Snapshot::open(path("b/second"));
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_TRUE(mapped(*snapshot) == ram);
}

TEST_F(SnapshotTest, ABaseThatMovedIsFoundWhereItIsSaidToBe) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save("other"));
  ASSERT_TRUE(save_difference("second", "full"));
  std::filesystem::rename(path("full"), path("moved"));
  EXPECT_EQ(Snapshot::open(path("second")).error().message(),
            path("second") + ": base: " + path("second") + "/../full: No such file or directory");
  const std::vector<std::string> elsewhere{path("second"), path("nowhere"), path("moved")};
  const auto snapshot = Snapshot::open(path("second"), elsewhere);
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_TRUE(mapped(*snapshot) == ram);
}

TEST_F(SnapshotTest, ABaseThatIsAnotherSnapshotIsRefused) {
  ASSERT_TRUE(save("full"));
  ASSERT_TRUE(save_difference("second", "full"));
  change(0, 10, 5);
  ASSERT_TRUE(save("full", nullptr, Replace::kYes));
  EXPECT_EQ(Snapshot::open(path("second")).error().message(),
            path("second") + ": base: " + path("second") + "/../full is another snapshot than it was");
}

TEST_F(SnapshotTest, AChainLongerThanIsReadBackIsNotWritten) {
  make_chain(kMaxChainLength);
  const auto longest = Snapshot::open(path(std::to_string(kMaxChainLength - 1)));
  ASSERT_TRUE(longest) << longest.error().message();
  EXPECT_EQ(save("more", &*longest).error().code(), Errc::kOutOfRange);
}

TEST_F(SnapshotTest, ProgressGoesFromNothingToAll) {
  struct Recorder final : ProgressSink {
    Result<void> report(const ProgressReport& progress) override {
      reports.push_back(progress);
      return {};
    }
    std::vector<ProgressReport> reports;
  };
  ASSERT_TRUE(save("one"));
  Recorder recorder;
  ASSERT_TRUE(Snapshot::open(path("one"))->verify(recorder));
  EXPECT_EQ(recorder.reports.front(), (ProgressReport{"checking RAM", 0, kRamBytes}));
  EXPECT_EQ(recorder.reports.back(), (ProgressReport{"checking RAM", kRamBytes, kRamBytes}));
}

TEST_F(SnapshotTest, ACopyThatIsMappedKeepsItsWritesToItself) {
  ASSERT_TRUE(save("one"));
  const auto snapshot = Snapshot::open(path("one"));
  const auto clone = snapshot->map_ram(kRange);
  ASSERT_TRUE(clone);
  clone->bytes()[0] = std::byte{0x55};
  EXPECT_TRUE(mapped(*snapshot) == ram);
  EXPECT_TRUE(verify("one"));
}

}  // namespace
}  // namespace tandem::migration
