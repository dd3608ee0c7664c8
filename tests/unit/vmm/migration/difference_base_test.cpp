// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/difference_base.hpp"

#include "tests/fakes/fake_guest_write_log.hpp"
#include "tests/unit/vmm/migration/snapshot_rig.hpp"

namespace tandem::migration {
namespace {

/// A machine that runs, and is saved again and again.
class DifferenceBaseTest : public SnapshotRig {
 protected:
  void guest_writes(size_t page, uint32_t seed) {
    std::ranges::copy(noise(kPageBytes, seed), ram.begin() + static_cast<ptrdiff_t>(page * kPageBytes));
    guest_.written.mark(PageRun{page, 1});
  }

  /// What a save of the machine does. @param before_commit  what happens once the guest goes on.
  template <typename Call>
  Result<void> save_machine(const std::string& name, const std::string& base, Call before_commit) {
    std::optional<Snapshot> snapshot;
    if (!base.empty()) {
      snapshot = TANDEM_TRY(Snapshot::open(path(base)));
      TANDEM_TRY(base_.require(*snapshot));
    }
    TANDEM_TRY(base_.collect());
    changed.clear();
    changed.merge(base_.changes());
    SilentProgress progress;
    auto writer = TANDEM_TRY(write(name, snapshot ? &*snapshot : nullptr, Replace::kNo, progress));
    TANDEM_TRY(before_commit());
    base_.accept(TANDEM_TRY(writer.commit()), path(name));
    return {};
  }
  Result<void> save_machine(const std::string& name, const std::string& base = "") {
    return save_machine(name, base, [] { return Result<void>(); });
  }
  void expect_holds(const std::string& name, const std::vector<std::byte>& expected) const {
    const auto snapshot = Snapshot::open(path(name));
    ASSERT_TRUE(snapshot) << snapshot.error().message();
    EXPECT_EQ(mapped(*snapshot), expected);
    EXPECT_EQ(read(*snapshot), expected);
  }
  [[nodiscard]] uint64_t pages_in(const std::string& name) const {
    return Snapshot::open(path(name))->ram_files().front().sums().held->count();
  }

  GuestMemory memory_{std::vector{GuestMemory::Region{kRange, ram}}};
  FakeGuestWriteLog guest_{DirtyBitmap(kRange, kPageBytes)};
  RamWriteLog log_{memory_, guest_, kRange, kPageBytes};
  DifferenceBase base_{log_};
};

TEST_F(DifferenceBaseTest, AChainHoldsWhatWasWrittenBetweenItsSnapshots) {
  ASSERT_TRUE(save_machine("full"));
  const auto first = ram;
  guest_writes(3, 1);
  guest_writes(900, 2);
  ASSERT_TRUE(memory_.write_value(GuestAddr(kRange.base().value() + 7 * kPageBytes), uint64_t{1}));  // the host does
  ASSERT_TRUE(save_machine("one", "full"));
  const auto second = ram;
  guest_writes(3, 4);
  ASSERT_TRUE(save_machine("two", "one"));
  expect_holds("full", first);
  expect_holds("one", second);
  expect_holds("two", ram);
  EXPECT_EQ(pages_in("one"), 3U);
  EXPECT_EQ(pages_in("two"), 1U);
}

TEST_F(DifferenceBaseTest, WhatIsWrittenWhileTheSaveReachesTheDiskIsInTheNextOne) {
  ASSERT_TRUE(save_machine("full", "", [&] {
    guest_writes(5, 1);
    return Result<void>();
  }));
  ASSERT_TRUE(save_machine("one", "full", [&] {
    guest_writes(6, 2);
    return Result<void>();
  }));
  ASSERT_TRUE(save_machine("two", "one"));
  expect_holds("two", ram);
  EXPECT_EQ(pages_in("one"), 1U);
  EXPECT_EQ(pages_in("two"), 1U);
}

TEST_F(DifferenceBaseTest, ASaveThatFailsLosesNoChange) {
  ASSERT_TRUE(save_machine("full"));
  guest_writes(5, 1);
  ASSERT_FALSE(save_machine("one", "full", [&] {
    guest_writes(6, 2);
    return Result<void>(fail(Errc::kIo, "the disk is full"));
  }));
  base_.discard();
  guest_writes(7, 3);
  ASSERT_TRUE(save_machine("one", "full"));
  expect_holds("one", ram);
  EXPECT_EQ(pages_in("one"), 3U);
}

TEST_F(DifferenceBaseTest, NothingIsNotedForASaveThatFailsWithoutABase) {
  ASSERT_FALSE(save_machine("full", "", [] { return Result<void>(fail(Errc::kIo, "the disk is full")); }));
  EXPECT_TRUE(guest_.is_on);
  base_.discard();
  EXPECT_FALSE(guest_.is_on);
}

TEST_F(DifferenceBaseTest, ARestoredMachineHasTheSnapshotAsItsBase) {
  ASSERT_TRUE(save("old"));
  ASSERT_TRUE(base_.start(*Snapshot::open(path("old"))));
  guest_writes(1, 1);
  ASSERT_TRUE(save_machine("one", "old"));
  expect_holds("one", ram);
  EXPECT_EQ(pages_in("one"), 1U);
}

TEST_F(DifferenceBaseTest, AnotherReaderTakesNothingAway) {
  ASSERT_TRUE(save_machine("full"));
  guest_writes(1, 1);
  {
    const auto migration = log_.open();
    ASSERT_TRUE(migration);
    guest_writes(2, 2);
    DirtyBitmap sent = log_.make_bitmap();
    ASSERT_TRUE((*migration)->collect(sent));
  }
  guest_writes(3, 3);
  ASSERT_TRUE(save_machine("one", "full"));
  expect_holds("one", ram);
  EXPECT_EQ(pages_in("one"), 3U);
}

TEST_F(DifferenceBaseTest, OnlyTheLastSnapshotIsABase) {
  ASSERT_TRUE(save("stranger"));
  const Snapshot stranger = *Snapshot::open(path("stranger"));
  EXPECT_EQ(base_.require(stranger).error().message(),
            path("stranger") +
                ": no difference to it: this virtual machine was neither restored from nor saved in a snapshot yet");
  ram[0] = std::byte{9};
  ASSERT_TRUE(save_machine("mine"));
  EXPECT_EQ(base_.require(stranger).error().message(),
            path("stranger") + ": no difference to it: this virtual machine was last saved in, or restored from, " +
                path("mine"));
  EXPECT_TRUE(base_.require(*Snapshot::open(path("mine"))));
}

TEST_F(DifferenceBaseTest, ABaseThatWasReplacedIsCalledAnother) {
  ASSERT_TRUE(save_machine("full"));
  ram[0] = std::byte{9};
  ASSERT_TRUE(save("full", nullptr, Replace::kYes));
  EXPECT_EQ(
      base_.require(*Snapshot::open(path("full"))).error().message(),
      path("full") +
          ": no difference to it: it is another snapshot than when this virtual machine was saved in, or restored "
          "from it");
}

TEST_F(DifferenceBaseTest, ALogThatCannotBeHadIsAnErrorAndNoBase) {
  guest_.fails = true;
  EXPECT_EQ(save_machine("full").error().message(), "no memory for it");
  ASSERT_TRUE(save("old"));
  EXPECT_FALSE(base_.start(*Snapshot::open(path("old"))));
  EXPECT_FALSE(base_.require(*Snapshot::open(path("old"))));
}

}  // namespace
}  // namespace tandem::migration
