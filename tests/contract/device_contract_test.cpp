// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "tests/contract/device_table.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

constexpr std::array kWidths{1U, 2U, 4U, 8U};
constexpr std::array kValues{uint64_t{0}, UINT64_MAX, uint64_t{0x5555555555555555}, uint64_t{0xaaaaaaaaaaaaaaaa}};
constexpr std::array kSeeds{1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U};
constexpr unsigned kPokes = 500;
constexpr unsigned kCorruptions = 50;

/// What the interfaces Component and MmioHandler promise, for one device.
class DeviceContractTest : public ::testing::TestWithParam<DeviceRow> {
 protected:
  static void SetUpTestSuite() { log::set_level(log::Level::kOff); }  // of what hostile drivers are told
  void SetUp() override { find_registers(); }

  [[nodiscard]] std::unique_ptr<Subject> make() const { return GetParam().make(); }
  static StateRecord save(Subject& subject) {
    EXPECT_TRUE(subject.component().pause());
    auto record = subject.component().save();
    EXPECT_TRUE(record);
    return std::move(*record);
  }
  static void expect_refused(Subject& subject, const StateRecord& record, const char* what) {
    const auto done = subject.component().restore(record);
    ASSERT_FALSE(done) << what;
    EXPECT_EQ(done.error().code(), Errc::kCorrupt) << what << ": " << done.error().message();
  }

  /// What a driver might do, and what a hostile one might: accesses of all kinds, most of them where something is.
  void poke(Subject& subject, unsigned seed) const {
    Random random(seed);
    for (unsigned count = 0; count < kPokes; ++count) {
      if (random() % 32 == 0) {
        subject.drive(random);
      }
      const MmioAccess access = any_access(random);
      const uint64_t value = random() >> (random() % 64);
      switch (random() % 8) {
        case 0:
          subject.bench().stir(random);
          break;
        case 1:
        case 2:
          static_cast<void>(subject.handler().read(access));
          break;
        default:
          static_cast<void>(subject.handler().write(
              access, access.width_bytes == 8 ? value : value & ((1ULL << (8 * access.width_bytes)) - 1)));
          break;
      }
    }
  }

 private:
  void find_registers() {
    const auto subject = make();
    std::vector<MmioAccess> readable;
    for (uint64_t offset = 0; offset < GetParam().window_bytes; ++offset) {
      for (const unsigned width : kWidths) {
        const MmioAccess access{.offset = offset, .width_bytes = width};
        if (offset + width > GetParam().window_bytes) {
          continue;
        }
        if (subject->handler().write(access, 0)) {
          registers_.push_back(access);
        } else if (subject->handler().read(access)) {
          readable.push_back(access);
        }
      }
    }
    if (registers_.empty()) {
      registers_ = std::move(readable);
    }
    ASSERT_FALSE(registers_.empty());
  }
  MmioAccess any_access(Random& random) const {
    if (random() % 4 != 0) {
      return registers_[random() % registers_.size()];
    }
    const uint64_t offset = random() % GetParam().window_bytes;
    unsigned width = kWidths.at(random() % kWidths.size());
    while (offset + width > GetParam().window_bytes) {
      width /= 2;
    }
    return {.offset = offset, .width_bytes = width};
  }

  std::vector<MmioAccess> registers_;  // what can be written; if nothing can, what can be read
};

TEST_P(DeviceContractTest, EveryAccessOfTheWindowIsAnswered) {
  const auto subject = make();
  for (uint64_t offset = 0; offset < GetParam().window_bytes; ++offset) {
    for (const unsigned width : kWidths) {
      if (offset + width > GetParam().window_bytes) {
        continue;
      }
      const MmioAccess access{.offset = offset, .width_bytes = width};
      static_cast<void>(subject->handler().read(access));
      for (const uint64_t value : kValues) {
        static_cast<void>(subject->handler().write(access, value >> (64 - 8 * width)));
        static_cast<void>(subject->handler().read(access));
      }
    }
  }
  EXPECT_TRUE(subject->component().reset());
}

TEST_P(DeviceContractTest, ResetEqualsFresh) {
  for (const unsigned seed : kSeeds) {
    const auto used = make();
    const auto fresh = make();
    poke(*used, seed);
    fresh->bench().clock.set_realtime_ns(used->bench().clock.realtime_ns());
    ASSERT_TRUE(fresh->component().reset());
    ASSERT_TRUE(used->component().pause());
    ASSERT_TRUE(used->component().reset());
    EXPECT_EQ(save(*used), save(*fresh)) << "seed " << seed;
    EXPECT_FALSE(used->bench().irq_sink.level(Intid::spi(0))) << "seed " << seed;
  }
}

TEST_P(DeviceContractTest, SavedRestoredAndSavedAgainIsTheSame) {
  for (const unsigned seed : kSeeds) {
    const auto source = make();
    poke(*source, seed);
    const StateRecord record = save(*source);
    const auto target = make();
    poke(*target, seed + 100);
    ASSERT_TRUE(target->component().pause());
    ASSERT_TRUE(target->component().restore(record)) << "seed " << seed;
    EXPECT_EQ(save(*target), record) << "seed " << seed;
    EXPECT_EQ(save(*source), record) << "saving changes nothing; seed " << seed;
  }
}

TEST_P(DeviceContractTest, ARestoredDeviceAnswersAsTheOriginal) {
  for (const unsigned seed : kSeeds) {
    const auto source = make();
    poke(*source, seed);
    const StateRecord record = save(*source);
    const auto target = make();
    target->bench().clock.set_realtime_ns(source->bench().clock.realtime_ns());
    ASSERT_TRUE(target->component().pause());
    ASSERT_TRUE(target->component().restore(record));
    for (uint64_t offset = 0; offset + 4 <= GetParam().window_bytes; offset += 4) {
      const MmioAccess access{.offset = offset, .width_bytes = 4};
      ASSERT_EQ(target->handler().read(access), source->handler().read(access))
          << "seed " << seed << ", offset " << offset;
    }
  }
}

TEST_P(DeviceContractTest, RestoreTouchesNoWire) {
  for (const unsigned seed : kSeeds) {
    const auto source = make();
    poke(*source, seed);
    const auto target = make();
    ASSERT_TRUE(target->component().pause());
    const uint64_t before = target->bench().irq_sink.call_count();
    ASSERT_TRUE(target->component().restore(save(*source)));
    EXPECT_EQ(target->bench().irq_sink.call_count(), before) << "seed " << seed;
  }
}

TEST_P(DeviceContractTest, EveryTruncatedRecordIsRefused) {
  const auto source = make();
  poke(*source, kSeeds[0]);
  const StateRecord record = save(*source);
  const auto target = make();
  ASSERT_TRUE(target->component().pause());
  for (size_t size = 0; size < record.payload.size(); ++size) {
    StateRecord truncated = record;
    truncated.payload.resize(size);
    expect_refused(*target, truncated, "truncated");
  }
  EXPECT_TRUE(target->component().reset());
}

TEST_P(DeviceContractTest, ForeignAndOverlongRecordsAreRefused) {
  const auto subject = make();
  const StateRecord record = save(*subject);
  StateRecord foreign = record;
  foreign.kind += "x";
  expect_refused(*subject, foreign, "another kind");
  StateRecord newer = record;
  ++newer.version;
  expect_refused(*subject, newer, "another version");
  StateRecord longer = record;
  longer.payload.insert(longer.payload.end(), 8, std::byte{0x70});
  expect_refused(*subject, longer, "bytes left over");
  StateRecord twice = record;
  twice.payload.insert(twice.payload.end(), record.payload.begin(), record.payload.end());
  if (!record.payload.empty()) {
    expect_refused(*subject, twice, "fields given twice");
  }
}

TEST_P(DeviceContractTest, ACorruptedRecordIsRefusedOrLeavesAUsableDevice) {
  const auto source = make();
  poke(*source, kSeeds[0]);
  const StateRecord record = save(*source);
  Random random(kSeeds[1]);
  for (unsigned round = 0; round < kCorruptions && !record.payload.empty(); ++round) {
    const size_t place = random() % record.payload.size();
    StateRecord corrupted = record;
    corrupted.payload[place] ^= static_cast<std::byte>(1U << (random() % 8));
    const auto target = make();
    ASSERT_TRUE(target->component().pause());
    if (target->component().restore(corrupted)) {
      const StateRecord taken = save(*target);  // may differ: rings that break the rules are noted in it
      ASSERT_TRUE(target->component().restore(taken)) << "byte " << place;
      EXPECT_EQ(save(*target), taken) << "byte " << place;
    } else {
      ASSERT_TRUE(target->component().reset());
    }
    ASSERT_TRUE(target->component().resume());
    poke(*target, kSeeds[2]);
  }
}

TEST_P(DeviceContractTest, PauseAndResumeMayBeCalledTwice) {
  const auto subject = make();
  poke(*subject, kSeeds[0]);
  ASSERT_TRUE(subject->component().pause());
  ASSERT_TRUE(subject->component().pause());
  const StateRecord record = save(*subject);
  ASSERT_TRUE(subject->component().resume());
  ASSERT_TRUE(subject->component().resume());
  poke(*subject, kSeeds[1]);
  ASSERT_TRUE(subject->component().pause());
  ASSERT_TRUE(subject->component().restore(record));
  EXPECT_EQ(save(*subject), record);
}

TEST_P(DeviceContractTest, APausedDeviceDoesNothingOfItself) {
  const auto subject = make();
  poke(*subject, kSeeds[0]);
  const StateRecord record = save(*subject);
  const uint64_t calls = subject->bench().irq_sink.call_count();
  Random random(kSeeds[1]);
  for (unsigned count = 0; count < 20; ++count) {
    subject->bench().stir(random);
  }
  EXPECT_EQ(save(*subject), record);
  EXPECT_EQ(subject->bench().irq_sink.call_count(), calls);
}

TEST_P(DeviceContractTest, HasAName) { EXPECT_FALSE(make()->component().name().empty()); }

INSTANTIATE_TEST_SUITE_P(Devices, DeviceContractTest, ::testing::ValuesIn(device_table()),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace tandem::devices
