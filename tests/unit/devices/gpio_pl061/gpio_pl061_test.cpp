// SPDX-License-Identifier: Apache-2.0
#include "devices/gpio_pl061/gpio_pl061.hpp"

#include <gtest/gtest.h>

#include "devices/gpio_pl061/gpio_pl061_regs.hpp"
#include "devices/gpio_pl061/gpio_pl061_state.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_timer.hpp"

namespace tandem::devices {
namespace {

using namespace pl061;

constexpr Intid kIntid = Intid::spi(3);
constexpr uint64_t kKey = 1U << GpioPl061::kPowerKeyPin;
constexpr uint64_t kAllPins = GPIODATA + 0x3fc;

class GpioPl061Test : public ::testing::Test {
 protected:
  uint64_t read(uint64_t offset) { return gpio_.read({.offset = offset, .width_bytes = 4}).value(); }
  void write(uint64_t offset, uint64_t value) { ASSERT_TRUE(gpio_.write({.offset = offset, .width_bytes = 4}, value)); }
  [[nodiscard]] bool irq() const { return sink_.level(kIntid); }

  FakeIrqSink sink_;
  std::unique_ptr<FakeTimer> owned_timer_ = std::make_unique<FakeTimer>();
  FakeTimer& timer_ = *owned_timer_;
  GpioPl061 gpio_{"gpio0", IrqLine(sink_, kIntid), std::move(owned_timer_)};
};

TEST_F(GpioPl061Test, PowerKeyIsDownForAWhile) {
  EXPECT_EQ(read(kAllPins), 0U);
  gpio_.press_power_key();
  EXPECT_EQ(read(kAllPins), kKey);
  ASSERT_TRUE(timer_.is_armed());
  timer_.fire();
  EXPECT_EQ(read(kAllPins), 0U);
}

TEST_F(GpioPl061Test, TheOffsetMasksTheBitsThatAreRead) {
  gpio_.press_power_key();
  EXPECT_EQ(read(GPIODATA + (kKey << 2)), kKey);
  EXPECT_EQ(read(GPIODATA + ((kKey ^ 0xff) << 2)), 0U);
}

TEST_F(GpioPl061Test, TheOffsetMasksTheBitsThatAreWritten) {
  write(GPIODIR, 0xff);
  write(GPIODATA + (0x0f << 2), 0xff);
  EXPECT_EQ(read(kAllPins), 0x0fU);
}

TEST_F(GpioPl061Test, InputsTakeNoValueFromTheGuest) {
  write(GPIODIR, 0x01);
  write(kAllPins, 0xff);
  EXPECT_EQ(read(kAllPins), 0x01U);
  write(GPIODIR, 0xff);
  EXPECT_EQ(read(kAllPins), 0x01U);
}

TEST_F(GpioPl061Test, BothEdgesInterruptAsLinuxAsksForAKey) {
  write(GPIOIBE, kKey);
  write(GPIOIE, kKey);
  gpio_.press_power_key();
  EXPECT_TRUE(irq());
  EXPECT_EQ(read(GPIOMIS), kKey);
  write(GPIOIC, kKey);
  EXPECT_FALSE(irq());
  timer_.fire();
  EXPECT_TRUE(irq());
}

TEST_F(GpioPl061Test, RisingEdgeInterruptsWhenSelected) {
  write(GPIOIEV, kKey);
  write(GPIOIE, kKey);
  gpio_.press_power_key();
  EXPECT_TRUE(irq());
  write(GPIOIC, kKey);
  timer_.fire();
  EXPECT_FALSE(irq());
}

TEST_F(GpioPl061Test, FallingEdgeInterruptsWhenSelected) {
  write(GPIOIE, kKey);
  gpio_.press_power_key();
  EXPECT_FALSE(irq());
  timer_.fire();
  EXPECT_TRUE(irq());
}

TEST_F(GpioPl061Test, LevelInterruptsAsLongAsItLastsAndCannotBeCleared) {
  write(GPIOIS, kKey);
  write(GPIOIEV, kKey);
  write(GPIOIE, kKey);
  EXPECT_FALSE(irq());
  gpio_.press_power_key();
  EXPECT_TRUE(irq());
  write(GPIOIC, kKey);
  EXPECT_TRUE(irq());
  timer_.fire();
  EXPECT_FALSE(irq());
}

TEST_F(GpioPl061Test, MaskedEdgeIsKeptAsRawStatus) {
  write(GPIOIBE, kKey);
  gpio_.press_power_key();
  EXPECT_FALSE(irq());
  EXPECT_EQ(read(GPIORIS), kKey);
  EXPECT_EQ(read(GPIOMIS), 0U);
  write(GPIOIE, kKey);
  EXPECT_TRUE(irq());
}

TEST_F(GpioPl061Test, AnOutputsEdgeInterruptsToo) {
  write(GPIODIR, 0x01);
  write(GPIOIBE, 0x01);
  write(GPIOIE, 0x01);
  write(kAllPins, 0x01);
  EXPECT_TRUE(irq());
}

TEST_F(GpioPl061Test, AKeyHeldDownWhileSavedIsLetGoAfterResume) {
  gpio_.press_power_key();
  ASSERT_TRUE(gpio_.pause());
  EXPECT_FALSE(timer_.is_armed());
  auto owned = std::make_unique<FakeTimer>();
  FakeTimer& other_timer = *owned;
  FakeIrqSink other_sink;
  GpioPl061 other("gpio0", IrqLine(other_sink, kIntid), std::move(owned));
  ASSERT_TRUE(other.pause());
  ASSERT_TRUE(other.restore(gpio_.save().value()));
  ASSERT_TRUE(other.resume());
  EXPECT_EQ(other.read({kAllPins, 4}).value(), kKey);
  ASSERT_TRUE(other_timer.is_armed());
  other_timer.fire();
  EXPECT_EQ(other.read({kAllPins, 4}).value(), 0U);
}

TEST_F(GpioPl061Test, RestoreRefusesPinsThatNothingDrives) {
  GpioPl061StateV1 state;
  state.inputs = 1;
  EXPECT_FALSE(gpio_.restore(save_state(state)));
}

TEST_F(GpioPl061Test, IdentifiesItself) {
  EXPECT_EQ(read(0xfe0), 0x61U);
  EXPECT_EQ(read(0xfe4), 0x10U);
  EXPECT_EQ(read(0xff0), 0x0dU);
}

TEST_F(GpioPl061Test, KeyNodePointsToTheController) {
  const FdtNode controller = gpio_.describe({GuestRange::fixed(0x9020000, 0x1000), kIntid, 7}, 9);
  const FdtNode keys = GpioPl061::describe_power_key(9);
  EXPECT_NE(controller.find("gpio-controller"), nullptr);
  ASSERT_EQ(keys.children().size(), 1U);
  const auto& reference = keys.children()[0].find("gpios")->value;
  EXPECT_TRUE(std::equal(reference.begin(), reference.begin() + 4, controller.find("phandle")->value.begin()));
  EXPECT_EQ(reference.at(7), std::byte{GpioPl061::kPowerKeyPin});
}

}  // namespace
}  // namespace tandem::devices
