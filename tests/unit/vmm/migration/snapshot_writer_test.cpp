// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/snapshot_writer.hpp"

#include "tests/unit/vmm/migration/snapshot_rig.hpp"

namespace tandem::migration {
namespace {

using Names = std::vector<std::string>;

class SnapshotWriterTest : public SnapshotRig {};

TEST_F(SnapshotWriterTest, ZeroPagesAreHoles) {
  ASSERT_TRUE(save("one"));
  struct stat status{};
  ASSERT_EQ(::stat(path("one/ram").c_str(), &status), 0);
  EXPECT_GT(static_cast<uint64_t>(status.st_size), kRamBytes);
  constexpr uint64_t kBlockBytes = 512;
  EXPECT_LT(static_cast<uint64_t>(status.st_blocks) * kBlockBytes, kRamBytes / 2);
}

TEST_F(SnapshotWriterTest, OthersCannotReadTheGuestsMemory) {
  ASSERT_TRUE(save("one"));
  struct stat status{};
  ASSERT_EQ(::stat(path("one").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat(path("one/ram").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(SnapshotWriterTest, WithoutCommitNothingIsLeft) {
  SilentProgress progress;
  {
    ASSERT_TRUE(write("one", nullptr, Replace::kNo, progress));
  }
  EXPECT_EQ(names(), Names());
}

TEST_F(SnapshotWriterTest, AFailedSaveLeavesTheOldSnapshot) {
  const auto old = save("one");
  change(0, 4000, 9);
  SilentProgress progress;
  {
    ASSERT_TRUE(write("one", nullptr, Replace::kYes, progress));
  }
  EXPECT_EQ(names(), Names{"one"});
  EXPECT_EQ(Snapshot::open(path("one"))->identity(), *old);
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotWriterTest, ProgressEndsTheWork) {
  struct Stop final : ProgressSink {
    Result<void> report(const ProgressReport& progress) override {
      return progress.done_bytes > 0 ? Result<void>(fail(Errc::kClosed, "cancelled")) : Result<void>();
    }
  } stop;
  const auto writer = write("one", nullptr, Replace::kNo, stop);
  ASSERT_FALSE(writer);
  EXPECT_TRUE(writer.error().message().ends_with("cancelled")) << writer.error().message();
  EXPECT_EQ(names(), Names());
}

TEST_F(SnapshotWriterTest, WhatIsThereIsNotTouched) {
  const auto old = save("one");
  const auto again = save("one");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::kExists);
  EXPECT_EQ(again.error().message(), path("one") + ": is there already (--replace replaces a snapshot)");
  EXPECT_EQ(Snapshot::open(path("one"))->identity(), *old);
}

TEST_F(SnapshotWriterTest, WhatAppearsMeanwhileIsNotTouched) {
  SilentProgress progress;
  auto writer = write("one", nullptr, Replace::kNo, progress);
  ASSERT_TRUE(writer);
  std::filesystem::create_directory(path("one"));
  EXPECT_EQ(writer->commit().error().code(), Errc::kExists);
  EXPECT_TRUE(names("one").empty());
}

TEST_F(SnapshotWriterTest, ReplacingLeavesOnlyTheNewOne) {
  ASSERT_TRUE(save("one"));
  change(0, 4000, 9);
  const auto fresh = save("one", nullptr, Replace::kYes);
  ASSERT_TRUE(fresh) << fresh.error().message();
  EXPECT_EQ(names(), Names{"one"});
  EXPECT_EQ(Snapshot::open(path("one"))->identity(), *fresh);
  EXPECT_TRUE(mapped(*Snapshot::open(path("one"))) == ram);
}

TEST_F(SnapshotWriterTest, ReplacingNothingIsSaving) {
  EXPECT_TRUE(save("one", nullptr, Replace::kYes));
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotWriterTest, AnEmptyDirectoryIsReplaced) {
  std::filesystem::create_directory(path("one"));
  EXPECT_TRUE(save("one", nullptr, Replace::kYes));
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotWriterTest, WhoRunsFromAReplacedSnapshotKeepsItsRam) {
  ASSERT_TRUE(save("one"));
  const auto clone = Snapshot::open(path("one"))->map_ram(kRange);
  const std::vector<std::byte> then = ram;
  change(2 * kRamChunkBytes, 4000, 9);
  ASSERT_TRUE(save("one", nullptr, Replace::kYes));
  EXPECT_TRUE(std::ranges::equal(clone->bytes(), then));
}

TEST_F(SnapshotWriterTest, ADirectoryWithOtherThingsIsNotReplaced) {
  ASSERT_TRUE(save("one"));
  overwrite("one/notes", "mine");
  EXPECT_EQ(save("one", nullptr, Replace::kYes).error().message(),
            path("one") + ": holds 'notes', which is no part of a snapshot: it is not replaced");
  EXPECT_EQ(content("one/notes"), "mine");
}

TEST_F(SnapshotWriterTest, WhatIsNoSnapshotIsNotReplaced) {
  std::filesystem::create_directory(path("one"));
  overwrite("one/ram", "mine");
  EXPECT_EQ(save("one", nullptr, Replace::kYes).error().message(),
            path("one") + ": is no snapshot: it is not replaced");
  overwrite("two", "mine");
  EXPECT_EQ(save("two", nullptr, Replace::kYes).error().message(),
            path("two") + ": is no directory: it is not replaced");
  ASSERT_EQ(::symlink("one", path("three").c_str()), 0);
  EXPECT_EQ(save("three", nullptr, Replace::kYes).error().message(),
            path("three") + ": is no directory: it is not replaced");
}

TEST_F(SnapshotWriterTest, ATrailingSlashIsNoOtherName) {
  EXPECT_TRUE(save("one/"));
  EXPECT_EQ(names(), Names{"one"});
}

TEST_F(SnapshotWriterTest, ADirectoryWithoutANameIsRefused) {
  EXPECT_EQ(save("..").error().message(), path("..") + ": is no name for a new directory");
  EXPECT_EQ(SnapshotWriter::create({.directory = ""}).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(SnapshotWriter::create({.directory = "/"}).error().code(), Errc::kInvalidArgument);
}

TEST_F(SnapshotWriterTest, ADirectoryThatCannotBeMadeIsNamed) {
  EXPECT_EQ(save("none/one").error().message(), path("none/one") + ": directory around it: No such file or directory");
}

TEST_F(SnapshotWriterTest, TheBaseIsNotReplacedByItsDifference) {
  ASSERT_TRUE(save("one"));
  const auto base = Snapshot::open(path("one"));
  ASSERT_EQ(::symlink("one", path("two").c_str()), 0);
  EXPECT_EQ(save("one", &*base, Replace::kYes).error().code(), Errc::kInvalidArgument);
  EXPECT_TRUE(verify("one"));
}

TEST_F(SnapshotWriterTest, ABaseOfAnotherSizeIsRefused) {
  ASSERT_TRUE(save("one"));
  const auto base = Snapshot::open(path("one"));
  SilentProgress progress;
  const auto half = GuestRange::create(kRange.base(), kRamBytes / 2).value();
  const DirtyBitmap none(half, kPageBytes);
  auto writer = SnapshotWriter::create({.directory = path("two"), .base = &*base});
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->put_ram(std::span(ram).first(kRamBytes / 2), &none, progress).error().code(),
            Errc::kInvalidArgument);
}

TEST_F(SnapshotWriterTest, APathToTheBaseThatIsNoTextIsRefused) {
  ASSERT_TRUE(save("o\xff"));
  const auto saved = save_difference("two", "o\xff");
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message(), "the way to the base cannot be written down: it is not UTF-8");
}

TEST_F(SnapshotWriterTest, StateThatIsNotReadBackIsNotWritten) {
  state[0].record.payload.resize(kMaxStatePayload + 1);
  EXPECT_EQ(save("one").error().code(), Errc::kOutOfRange);
  EXPECT_EQ(names(), Names());
}

}  // namespace
}  // namespace tandem::migration
