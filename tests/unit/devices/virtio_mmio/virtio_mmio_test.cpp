// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_mmio/virtio_mmio.hpp"

#include <gtest/gtest.h>

#include <string>

#include "devices/virtio_mmio/virtio_mmio_regs.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_ram.hpp"
#include "tests/fakes/fake_virtio_device.hpp"
#include "tests/fakes/guest_queue.hpp"
#include "tests/fakes/guest_virtio_mmio.hpp"

namespace tandem::devices {
namespace {

using namespace virtio_mmio;
using Calls = std::vector<std::string>;

constexpr Intid kIntid = Intid::spi(16);
constexpr uint32_t kRunning = ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK;
const Calls kNotifiedOnce{"notify 0"};

class VirtioMmioTest : public ::testing::Test {
 protected:
  void negotiate(uint64_t features = FakeVirtioDevice::kFeature) { ASSERT_TRUE(driver_.negotiate(features)); }
  /// Up to DRIVER_OK, with queue 0 only.
  void start() {
    negotiate();
    driver_.set_up_queue(0, ring_.state());
    driver_.set_driver_ok();
    loop_->run_ready();
    ASSERT_EQ(driver_.read(Status), kRunning);
    device_.take_calls();
  }
  [[nodiscard]] SplitQueue& queue() const { return device_.activation->queues[0]; }
  [[nodiscard]] uint64_t edges() const { return sink_.edge_count(kIntid); }
  MmioRead read(uint64_t offset, unsigned width_bytes) {
    return transport_.read({.offset = offset, .width_bytes = width_bytes});
  }
  MmioWrite write(uint64_t offset, unsigned width_bytes, uint64_t value) {
    return transport_.write({.offset = offset, .width_bytes = width_bytes}, value);
  }

  FakeRam ram_;
  FakeIrqSink sink_;
  FakeVirtioDevice device_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  DeviceExecutor executor_{*loop_};
  VirtioMmio transport_{"virtio0", IrqLine(sink_, kIntid), device_, ram_.memory(), executor_};
  GuestVirtioMmio driver_{transport_};
  GuestQueue ring_{ram_, 8};
};

// Registers

TEST_F(VirtioMmioTest, IdentifiesItself) {
  EXPECT_EQ(driver_.read(MagicValue), 0x74726976U);
  EXPECT_EQ(driver_.read(Version), 2U);
  EXPECT_EQ(driver_.read(DeviceID), 42U);
  EXPECT_NE(driver_.read(VendorID), 0U);
}

TEST_F(VirtioMmioTest, OffersTheDevicesFeaturesAndThoseOfRings) {
  EXPECT_EQ(driver_.offered_features(),
            FakeVirtioDevice::kFeature | kVirtioFVersion1 | kVirtioFIndirectDesc | kVirtioFEventIdx);
  driver_.write(DeviceFeaturesSel, 2);
  EXPECT_EQ(driver_.read(DeviceFeatures), 0U);
}

TEST_F(VirtioMmioTest, OnlyQueuesThatExistHaveASize) {
  EXPECT_EQ(transport_.queue_count(), 2U);
  driver_.write(QueueSel, 1);
  EXPECT_EQ(driver_.read(QueueNumMax), 16U);
  driver_.write(QueueSel, 2);
  EXPECT_EQ(driver_.read(QueueNumMax), 0U);
  EXPECT_EQ(driver_.read(QueueReady), 0U);
  driver_.write(QueueSel, UINT32_MAX);
  EXPECT_EQ(driver_.read(QueueNumMax), 0U);
}

TEST_F(VirtioMmioTest, ThereIsNoSharedMemory) {
  driver_.write(SHMSel, 0);
  for (const Register offset : {SHMLenLow, SHMLenHigh, SHMBaseLow, SHMBaseHigh}) {
    EXPECT_EQ(driver_.read(offset), UINT32_MAX) << offset;
  }
}

TEST_F(VirtioMmioTest, RegistersTakeOnlyAligned32BitAccesses) {
  EXPECT_EQ(read(Status, 1).error(), BadAccess::kWidth);
  EXPECT_EQ(read(QueueNumMax, 8).error(), BadAccess::kAlignment);
  EXPECT_EQ(read(QueueDescLow, 8).error(), BadAccess::kWidth);
  EXPECT_EQ(read(Status + 2, 4).error(), BadAccess::kAlignment);
  EXPECT_EQ(write(Status, 2, 1).error(), BadAccess::kWidth);
}

TEST_F(VirtioMmioTest, AccessInTheWrongDirectionIsBad) {
  EXPECT_EQ(read(QueueNotify, 4).error(), BadAccess::kWriteOnly);
  EXPECT_EQ(read(QueueDeviceHigh, 4).error(), BadAccess::kWriteOnly);
  EXPECT_EQ(write(MagicValue, 4, 0).error(), BadAccess::kReadOnly);
  EXPECT_EQ(write(ConfigGeneration, 4, 0).error(), BadAccess::kReadOnly);
}

TEST_F(VirtioMmioTest, HolesAndQueueResetAreNoRegisters) {
  EXPECT_EQ(read(0x018, 4).error(), BadAccess::kNoRegister);
  EXPECT_EQ(write(0x0c0, 4, 1).error(), BadAccess::kNoRegister);
  EXPECT_EQ(write(0x0f8, 4, 1).error(), BadAccess::kNoRegister);
}

TEST_F(VirtioMmioTest, ConfigurationSpaceTakesAnyWidthAndOffset) {
  ASSERT_TRUE(write(Config, 8, 0x8877665544332211));
  EXPECT_EQ(read(Config, 8), 0x8877665544332211U);
  EXPECT_EQ(read(Config + 1, 2), 0x3322U);
  EXPECT_EQ(read(Config + 7, 1), 0x88U);
  ASSERT_TRUE(write(Config + 6, 4, 0xaabbccdd));
  EXPECT_EQ(read(Config + 4, 8), 0xccdd6655U);
  EXPECT_EQ(read(VirtioMmio::kWindowBytes - 8, 8), 0U);
}

// Initialisation

TEST_F(VirtioMmioTest, ADriverThatFollowsTheRulesActivatesTheDevice) {
  negotiate();
  driver_.set_up_queue(0, ring_.state());
  EXPECT_EQ(driver_.read(QueueReady), 1U);
  EXPECT_FALSE(device_.activation);
  driver_.set_driver_ok();
  ASSERT_TRUE(device_.activation);
  EXPECT_EQ(device_.activation->features, FakeVirtioDevice::kFeature | kVirtioFVersion1);
  EXPECT_EQ(device_.activation->queues.size(), 2U);
  EXPECT_EQ(queue().state(), ring_.state());
  EXPECT_FALSE(device_.activation->queues[1].is_ready());
}

TEST_F(VirtioMmioTest, ReadyQueuesAreNotifiedAfterActivation) {
  negotiate();
  driver_.set_up_queue(0, ring_.state());
  driver_.set_driver_ok();
  EXPECT_EQ(device_.take_calls(), Calls{"activate"});
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), kNotifiedOnce);
}

TEST_F(VirtioMmioTest, WithoutVersion1FeaturesAreRefused) {
  driver_.write(DriverFeatures, FakeVirtioDevice::kFeature);
  driver_.write(Status, ACKNOWLEDGE | DRIVER | FEATURES_OK);
  EXPECT_EQ(driver_.read(Status), ACKNOWLEDGE | DRIVER);
}

TEST_F(VirtioMmioTest, FeaturesThatWereNotOfferedAreRefused) {
  EXPECT_FALSE(driver_.negotiate(FakeVirtioDevice::kFeature << 1));
  EXPECT_FALSE(driver_.negotiate(uint64_t{1} << 40));
  EXPECT_TRUE(driver_.negotiate(0));
}

TEST_F(VirtioMmioTest, FeaturesCannotChangeOnceAgreedOn) {
  negotiate(kVirtioFEventIdx);
  driver_.write(DriverFeaturesSel, 0);
  driver_.write(DriverFeatures, 0xffff'ffff);
  driver_.set_driver_ok();
  EXPECT_EQ(device_.activation->features, kVirtioFEventIdx | kVirtioFVersion1);
}

TEST_F(VirtioMmioTest, DriverOkNeedsFeaturesOk) {
  driver_.write(Status, ACKNOWLEDGE | DRIVER | DRIVER_OK);
  EXPECT_EQ(driver_.read(Status), ACKNOWLEDGE | DRIVER);
  EXPECT_FALSE(device_.activation);
}

TEST_F(VirtioMmioTest, StatusBitsCannotBeTakenBackNorMadeUp) {
  start();
  driver_.write(Status, ACKNOWLEDGE);
  driver_.write(Status, 0xffff'ffb0 | DEVICE_NEEDS_RESET);
  EXPECT_EQ(driver_.read(Status), kRunning | FAILED);
  EXPECT_EQ(device_.take_calls(), Calls());
}

TEST_F(VirtioMmioTest, AQueueNeedsFeaturesFirst) {
  driver_.set_up_queue(0, ring_.state());
  EXPECT_EQ(driver_.read(QueueReady), 0U);
}

TEST_F(VirtioMmioTest, SettingUpAQueueThatDoesNotExistIsIgnored) {
  negotiate();
  driver_.set_up_queue(2, ring_.state());
  EXPECT_EQ(driver_.read(Status), ACKNOWLEDGE | DRIVER | FEATURES_OK);
}

TEST_F(VirtioMmioTest, AReadyQueueCannotBeChanged) {
  start();
  driver_.write(QueueNum, 4);
  driver_.write(QueueDescLow, 0);
  EXPECT_EQ(queue().state(), ring_.state());
}

TEST_F(VirtioMmioTest, AQueueOutsideRamNeedsAReset) {
  negotiate();
  SplitQueue::State state = ring_.state();
  state.device_addr = 0;
  driver_.set_up_queue(0, state);
  EXPECT_EQ(driver_.read(QueueReady), 0U);
  EXPECT_EQ(driver_.read(Status), ACKNOWLEDGE | DRIVER | FEATURES_OK | DEVICE_NEEDS_RESET);
  EXPECT_EQ(edges(), 0U);  // no driver is there yet
  driver_.set_driver_ok();
  EXPECT_FALSE(device_.activation);
}

TEST_F(VirtioMmioTest, AQueueSizeThatIsTooLargeNeedsAReset) {
  negotiate();
  SplitQueue::State state = ring_.state();
  state.size = 16;  // queue 0 has 8
  driver_.set_up_queue(0, state);
  EXPECT_NE(driver_.read(Status) & DEVICE_NEEDS_RESET, 0U);
}

TEST_F(VirtioMmioTest, AQueueSizeAbove16BitsIsNotCutToASmallOne) {
  negotiate();
  driver_.set_up_queue(0, ring_.state());
  driver_.write(Status, 0);
  negotiate();
  driver_.write(QueueSel, 0);
  driver_.write(QueueNum, 0x10008);
  driver_.write(QueueReady, 1);
  EXPECT_NE(driver_.read(Status) & DEVICE_NEEDS_RESET, 0U);
}

// Doorbells

TEST_F(VirtioMmioTest, TheDoorbellIsPassedToTheEventLoopOnce) {
  start();
  driver_.write(QueueNotify, 0);
  driver_.write(QueueNotify, 0);
  EXPECT_EQ(device_.take_calls(), Calls());  // nothing on the vCPU's thread
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), kNotifiedOnce);
  driver_.write(VirtioMmio::doorbell_offset(), 0);
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), kNotifiedOnce);
}

TEST_F(VirtioMmioTest, DoorbellsOfQueuesThatAreNotReadyReachNobody) {
  start();
  driver_.write(QueueNotify, 1);
  driver_.write(QueueNotify, 2);
  driver_.write(QueueNotify, 0x10000);
  transport_.notify(1);
  transport_.notify(UINT16_MAX);
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), Calls());
}

TEST_F(VirtioMmioTest, DoorbellsBeforeDriverOkReachNobody) {
  negotiate();
  driver_.set_up_queue(0, ring_.state());
  driver_.write(QueueNotify, 0);
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), Calls());
}

TEST_F(VirtioMmioTest, ADoorbellThatArrivesAfterAResetReachesNobody) {
  start();
  driver_.write(QueueNotify, 0);
  driver_.write(Status, 0);
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), Calls{"reset"});
}

TEST_F(VirtioMmioTest, DoorbellsWhilePausedAreMadeUpForOnResume) {
  start();
  ASSERT_TRUE(transport_.pause());
  driver_.write(QueueNotify, 0);
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), Calls{"pause"});
  ASSERT_TRUE(transport_.resume());
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), (Calls{"resume", "notify 0"}));
}

// Interrupts

TEST_F(VirtioMmioTest, UsedBuffersRaiseAnEdgeAndTheirStatusBit) {
  start();
  transport_.notify_used(0);
  EXPECT_EQ(edges(), 1U);
  EXPECT_EQ(driver_.take_interrupts(), kUsedBufferNotification);
  EXPECT_EQ(driver_.take_interrupts(), 0U);
}

TEST_F(VirtioMmioTest, AcknowledgingOneInterruptKeepsTheOther) {
  start();
  transport_.notify_used(0);
  transport_.notify_config();
  driver_.write(InterruptACK, kUsedBufferNotification);
  EXPECT_EQ(driver_.read(InterruptStatus), kConfigurationChangeNotification);
}

TEST_F(VirtioMmioTest, AConfigurationChangeRaisesAnEdgeAndTheGeneration) {
  start();
  const uint32_t before = driver_.read(ConfigGeneration);
  transport_.notify_config();
  EXPECT_EQ(edges(), 1U);
  EXPECT_EQ(driver_.take_interrupts(), kConfigurationChangeNotification);
  EXPECT_NE(driver_.read(ConfigGeneration), before);
}

TEST_F(VirtioMmioTest, WithoutADriverAConfigurationChangeIsSilent) {
  transport_.notify_config();
  EXPECT_EQ(edges(), 0U);
  EXPECT_EQ(driver_.read(InterruptStatus), 0U);
}

TEST_F(VirtioMmioTest, ABrokenDeviceTellsTheDriverOnceAndIsLeftAlone) {
  start();
  transport_.set_needs_reset("test");
  transport_.set_needs_reset("test");
  EXPECT_EQ(edges(), 1U);
  EXPECT_EQ(driver_.read(Status), kRunning | DEVICE_NEEDS_RESET);
  EXPECT_EQ(driver_.take_interrupts(), kConfigurationChangeNotification);
  transport_.notify(0);
  driver_.write(QueueNotify, 0);
  loop_->run_ready();
  EXPECT_EQ(device_.take_calls(), Calls());
}

// Reset

TEST_F(VirtioMmioTest, ResetMakesAFreshDeviceThatCanBeUsedAgain) {
  const StateRecord fresh = transport_.save().value();
  start();
  transport_.set_needs_reset("test");
  driver_.write(Status, 0);
  EXPECT_EQ(device_.take_calls(), Calls{"reset"});
  EXPECT_EQ(driver_.read(Status), 0U);
  EXPECT_EQ(transport_.save(), fresh);
  start();
  EXPECT_TRUE(device_.activation);
}

TEST_F(VirtioMmioTest, TakingAQueueBackWhileTheDeviceRunsWaitsForIt) {
  start();
  driver_.write(QueueSel, 0);
  driver_.write(QueueReady, 0);
  EXPECT_EQ(driver_.read(QueueReady), 0U);
  EXPECT_EQ(device_.take_calls(), (Calls{"pause", "resume"}));
  driver_.set_up_queue(0, ring_.state());
  EXPECT_TRUE(queue().is_ready());
}

// Saved state

class VirtioMmioStateTest : public VirtioMmioTest {
 protected:
  /// A second machine over the same RAM.
  FakeVirtioDevice other_device_;
  FakeIrqSink other_sink_;
  VirtioMmio other_{"virtio0", IrqLine(other_sink_, kIntid), other_device_, ram_.memory(), executor_};
};

TEST_F(VirtioMmioStateTest, ARunningDeviceGoesOnInAnotherProcess) {
  start();
  device_.number = 7;
  ring_.chain().readable("x").submit();
  queue().push(std::move(queue().pop().value().value()), 0);
  transport_.notify_used(0);
  const StateRecord saved = transport_.save().value();
  ASSERT_TRUE(other_.pause());
  ASSERT_TRUE(other_.restore(saved));
  EXPECT_EQ(other_.save(), saved);
  EXPECT_EQ(other_sink_.edge_count(kIntid), 0U);
  EXPECT_EQ(other_device_.number, 7U);
  EXPECT_EQ(other_device_.take_calls(), (Calls{"pause", "reset", "restore", "activate"}));
  EXPECT_EQ(other_device_.activation->queues[0].state(), queue().state());
  EXPECT_EQ(GuestVirtioMmio(other_).take_interrupts(), kUsedBufferNotification);
  ASSERT_TRUE(other_.resume());
  loop_->run_ready();
  EXPECT_EQ(other_device_.take_calls(), (Calls{"resume", "notify 0"}));
}

TEST_F(VirtioMmioStateTest, AHalfInitialisedDeviceGoesOnInAnotherProcess) {
  negotiate();
  driver_.write(QueueSel, 0);
  driver_.write(QueueNum, 8);
  driver_.write(QueueDescLow, static_cast<uint32_t>(ring_.state().desc_addr));
  driver_.write(QueueDriverLow, static_cast<uint32_t>(ring_.state().driver_addr));
  ASSERT_TRUE(other_.restore(transport_.save().value()));
  EXPECT_FALSE(other_device_.activation);
  const GuestVirtioMmio driver(other_);
  driver.write(QueueDeviceLow, static_cast<uint32_t>(ring_.state().device_addr));
  driver.write(QueueReady, 1);
  driver.set_driver_ok();
  ASSERT_TRUE(other_device_.activation);
  EXPECT_EQ(other_device_.activation->queues[0].state(), ring_.state());
}

TEST_F(VirtioMmioStateTest, ABrokenDeviceStaysBroken) {
  start();
  transport_.set_needs_reset("test");
  ASSERT_TRUE(other_.restore(transport_.save().value()));
  EXPECT_FALSE(other_device_.activation);
  EXPECT_EQ(GuestVirtioMmio(other_).read(Status), kRunning | DEVICE_NEEDS_RESET);
}

TEST_F(VirtioMmioStateTest, EveryTruncatedRecordIsRefused) {
  start();
  const StateRecord saved = transport_.save().value();
  for (size_t length = 0; length < saved.payload.size(); ++length) {
    StateRecord cut = saved;
    cut.payload.resize(length);
    EXPECT_FALSE(other_.restore(cut)) << length;
    EXPECT_FALSE(other_device_.activation) << length;
  }
}

struct BadState {
  const char* name;
  void (*change)(VirtioMmioStateV1&);
};

class VirtioMmioBadStateTest : public VirtioMmioStateTest, public ::testing::WithParamInterface<BadState> {};

TEST_P(VirtioMmioBadStateTest, IsRefused) {
  start();
  auto saved = load_state<VirtioMmioStateV1>(transport_.save().value()).value();
  GetParam().change(saved);
  const auto done = other_.restore(save_state(saved));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Errc::kCorrupt);
  EXPECT_FALSE(other_device_.activation);
}

using S = VirtioMmioStateV1;
INSTANTIATE_TEST_SUITE_P(All, VirtioMmioBadStateTest,
                         ::testing::Values(BadState{"StatusBit", [](S& s) { s.status |= 0x10; }},
                                           BadState{"DriverOkAlone", [](S& s) { s.status = DRIVER_OK; }},
                                           BadState{"InterruptBit", [](S& s) { s.interrupt_status = 4; }},
                                           BadState{"FeatureNotOffered", [](S& s) { s.driver_features |= 1; }},
                                           BadState{"NoVersion1", [](S& s) { s.driver_features = 0; }},
                                           BadState{"QueueMissing", [](S& s) { s.queues.pop_back(); }},
                                           BadState{"QueueTooMany", [](S& s) { s.queues.emplace_back(); }},
                                           BadState{"QueueOutsideRam", [](S& s) { s.queues[0].desc_addr = 0; }},
                                           BadState{"QueueTooLarge", [](S& s) { s.queues[0].size = 16; }},
                                           BadState{"QueueIndexes", [](S& s) { s.queues[0].next_used = 1; }},
                                           BadState{"QueueReadyTooEarly", [](S& s) { s.status = ACKNOWLEDGE; }},
                                           BadState{"QueueUsedTooEarly", [](S& s) { s.queues[1].next_avail = 1; }},
                                           BadState{"DeviceKind", [](S& s) { s.device_kind = "other"; }},
                                           BadState{"DeviceVersion", [](S& s) { s.device_version = 2; }},
                                           BadState{"DevicePayload", [](S& s) { s.device_payload.pop_back(); }}),
                         [](const auto& row) { return std::string(row.param.name); });

// Description

TEST(VirtioMmioNodeTest, NamesWindowInterruptAndCoherence) {
  const FdtNode node = VirtioMmio::describe(
      {.window = GuestRange::fixed(0x0a000200, 0x200), .intid = Intid::spi(17), .clock_phandle = 0});
  EXPECT_EQ(node.name(), "virtio_mmio@a000200");
  ASSERT_NE(node.find("compatible"), nullptr);
  EXPECT_NE(node.find("reg"), nullptr);
  EXPECT_NE(node.find("dma-coherent"), nullptr);
  const auto* const interrupts = node.find("interrupts");
  ASSERT_NE(interrupts, nullptr);
  const std::vector<std::byte> edge_rising_spi_17{{}, {}, {}, {}, {}, {}, {}, std::byte{17}, {}, {}, {}, std::byte{1}};
  EXPECT_EQ(interrupts->value, edge_rising_spi_17);
}

}  // namespace
}  // namespace tandem::devices
