// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/state/state_record.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

struct PartV1 {
  uint16_t number = 0;
  bool operator==(const PartV1&) const = default;
  template <class A>
  void fields(A& a) {
    a(1, number);
  }
};

struct ThingV1 {
  static constexpr StateKind kKind{"thing", 1};
  uint32_t control = 0;
  bool enabled = false;
  std::array<uint8_t, 3> fifo{};
  std::vector<uint64_t> list;
  std::string text;
  std::vector<PartV1> parts;
  bool operator==(const ThingV1&) const = default;
  template <class A>
  void fields(A& a) {
    a(1, control);
    a(2, enabled);
    a(3, fifo);
    a(4, list);
    a(5, text);
    a(6, parts);
  }
};

ThingV1 example() {
  return {
      .control = 0x12345678, .enabled = true, .fifo = {1, 2, 3}, .list = {4, 5}, .text = "six", .parts = {{7}, {8}}};
}

TEST(StateRecordTest, WhatIsSavedIsLoaded) {
  const auto loaded = load_state<ThingV1>(save_state(example()));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(*loaded, example());
}

TEST(StateRecordTest, EveryTruncatedPayloadIsRefused) {
  const StateRecord whole = save_state(example());
  for (size_t length = 0; length < whole.payload.size(); ++length) {
    StateRecord cut = whole;
    cut.payload.resize(length);
    EXPECT_FALSE(load_state<ThingV1>(cut)) << length;
  }
}

TEST(StateRecordTest, AnotherKindOrVersionIsRefused) {
  StateRecord record = save_state(example());
  record.version = 2;
  EXPECT_FALSE(load_state<ThingV1>(record));
  record = save_state(example());
  record.kind = "thong";
  EXPECT_FALSE(load_state<ThingV1>(record));
}

TEST(StateRecordTest, AnUnknownFieldIsRefused) {
  StateRecord record = save_state(example());
  StateWriter extra;
  extra(99, uint8_t{1});
  const auto bytes = std::move(extra).take();
  record.payload.insert(record.payload.end(), bytes.begin(), bytes.end());
  const auto loaded = load_state<ThingV1>(record);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message(), "thing: field 99: unknown");
}

TEST(StateRecordTest, AFieldGivenTwiceIsRefused) {
  StateRecord record = save_state(example());
  StateWriter extra;
  extra(1, uint32_t{1});
  const auto bytes = std::move(extra).take();
  record.payload.insert(record.payload.end(), bytes.begin(), bytes.end());
  EXPECT_FALSE(load_state<ThingV1>(record));
}

TEST(StateRecordTest, MoreFieldsThanTheBoundAreRefused) {
  constexpr size_t kHeaderBytes = 8;
  const StateRecord record{.kind = "thing", .version = 1, .payload = std::vector<std::byte>(kHeaderBytes * 65537)};
  const auto loaded = load_state<ThingV1>(record);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message(), "thing: more than 65536 fields");
}

TEST(StateRecordTest, ABoolThatIsNeitherTrueNorFalseIsRefused) {
  StateRecord record = save_state(example());
  // control: 8 + 4 bytes; enabled: header of 8, then its byte.
  record.payload.at(12 + 8) = std::byte{2};
  EXPECT_FALSE(load_state<ThingV1>(record));
}

}  // namespace
}  // namespace tandem
