// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/state/saved_components.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

/// A component whose state is one number.
class Number final : public Component {
 public:
  Number(std::string name, uint32_t value) : name_(std::move(name)), value_(value) {}
  [[nodiscard]] uint32_t value() const { return value_; }

  [[nodiscard]] std::string_view name() const override { return name_; }
  Result<void> reset() override { return {}; }
  Result<void> pause() override { return {}; }
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override { return save_state(State{.value = value_}); }
  Result<void> restore(const StateRecord& record) override {
    value_ = TANDEM_TRY(load_state<State>(record)).value;
    return {};
  }

 private:
  struct State {
    static constexpr StateKind kKind{"number", 1};
    uint32_t value = 0;
    template <typename A>
    void fields(A& archive) {
      archive(1, value);
    }
  };
  std::string name_;
  uint32_t value_;
};

class SavedComponentsTest : public ::testing::Test {
 protected:
  SavedComponentsTest() {
    Number a("a", 1);
    Number b("b", 2);
    EXPECT_TRUE(save_into(state_, a));
    EXPECT_TRUE(save_into(state_, b));
  }
  MachineState state_;
};

TEST_F(SavedComponentsTest, EachComponentGetsWhatItSaved) {
  auto saved = SavedComponents::create(state_).value();
  Number b("b", 0);
  Number a("a", 0);
  ASSERT_TRUE(saved.restore(b));
  ASSERT_TRUE(saved.restore(a));
  EXPECT_EQ(a.value(), 1U);
  EXPECT_EQ(b.value(), 2U);
  EXPECT_TRUE(saved.finish());
}

TEST_F(SavedComponentsTest, AComponentThatIsThereTwiceIsRefusedByName) {
  state_.push_back(state_.front());
  const auto saved = SavedComponents::create(state_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code(), Errc::kCorrupt);
  EXPECT_EQ(saved.error().message(), "a: its state is there twice");
}

TEST_F(SavedComponentsTest, AComponentThatIsMissingIsRefusedByName) {
  auto saved = SavedComponents::create(state_).value();
  Number c("c", 0);
  EXPECT_EQ(saved.restore(c).error().message(), "c: its state is missing");
}

TEST_F(SavedComponentsTest, StateIsGivenOutOnce) {
  auto saved = SavedComponents::create(state_).value();
  Number a("a", 0);
  ASSERT_TRUE(saved.restore(a));
  EXPECT_FALSE(saved.restore(a));
}

TEST_F(SavedComponentsTest, WhatNobodyTookIsRefusedByName) {
  auto saved = SavedComponents::create(state_).value();
  ASSERT_TRUE(saved.take("a"));
  EXPECT_EQ(saved.finish().error().message(), "b: this machine has no such component");
}

TEST_F(SavedComponentsTest, WhatAComponentRefusesIsUnderItsName) {
  state_.front().record.payload.pop_back();
  auto saved = SavedComponents::create(state_).value();
  Number a("a", 0);
  const auto done = saved.restore(a);
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().message().starts_with("a: ")) << done.error().message();
}

}  // namespace
}  // namespace tandem
