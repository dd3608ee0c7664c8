// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/device_set.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "devices/gpio_pl061/gpio_pl061.hpp"
#include "tests/fakes/fake_doorbell_host.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_machine_events.hpp"
#include "tests/fakes/memory_file.hpp"
#include "vmm/machine/board_layout.hpp"

namespace tandem {
namespace {

constexpr auto kRam = GuestRange::fixed(0x4000'0000, 0x20'0000);
constexpr uint32_t kVirtioMagic = 0x74726976;

class DeviceSetTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<DeviceSet>> create(
      const MachineSpec& spec, devices::DiskFile::Locking disk_locking = devices::DiskFile::Locking::kNow) {
    return DeviceSet::create(spec, {.loop = *loop_,
                                    .irqs = irqs_,
                                    .doorbells = doorbells_,
                                    .memory = memory_,
                                    .ram = ram_,
                                    .events = events_,
                                    .disk_locking = disk_locking});
  }
  static MachineSpec spec_without_console() {
    MachineSpec spec;
    spec.console.kind = ConsoleSpec::Kind::kNone;
    return spec;
  }

  std::unique_ptr<EventLoop> loop_ = EventLoop::create().value();
  devices::FakeIrqSink irqs_;
  devices::FakeDoorbellHost doorbells_;
  GuestRam ram_ = GuestRam::create_anonymous(kRam).value();
  GuestMemory memory_{{{kRam, ram_.bytes()}}};
  FakeMachineEvents events_;
};

TEST_F(DeviceSetTest, TheConsoleIsAtItsAddress) {
  const auto set = create(spec_without_console()).value();
  constexpr uint64_t kUartPeriphId0 = 0xfe0;
  EXPECT_EQ(set->bus().read(board::kUart.base().plus(kUartPeriphId0).value(), 4), 0x11U);
}

TEST_F(DeviceSetTest, VirtioDevicesFillTheSlotsInOrder) {
  const auto set = create(spec_without_console()).value();
  EXPECT_EQ(set->bus().read(board::virtio_window(0).base(), 4), kVirtioMagic);
  EXPECT_EQ(set->edge_interrupts(), std::vector{board::virtio_irq(0)});
  EXPECT_EQ(set->bus().read(board::virtio_window(1).base(), 4), 0U);
}

TEST_F(DeviceSetTest, ABalloonComesAfterTheRandomNumbers) {
  MachineSpec spec = spec_without_console();
  spec.balloon = true;
  const auto set = create(spec).value();
  constexpr uint64_t kDeviceId = 8;
  EXPECT_EQ(set->bus().read(board::virtio_window(0).base().plus(kDeviceId).value(), 4), 4U);
  EXPECT_EQ(set->bus().read(board::virtio_window(1).base().plus(kDeviceId).value(), 4), 5U);
}

TEST_F(DeviceSetTest, ASocketDeviceComesLastAndItsSocketGoesWithIt) {
  const std::string path = fmt::format("{}device-set-{}", testing::TempDir(), ::getpid());
  MachineSpec spec = spec_without_console();
  spec.balloon = true;
  spec.vsock = VsockSpec{.path = path, .guest_cid = 42};
  auto set = create(spec).value();
  constexpr uint64_t kDeviceId = 8;
  constexpr uint64_t kConfig = 0x100;
  EXPECT_EQ(set->bus().read(board::virtio_window(2).base().plus(kDeviceId).value(), 4), 19U);
  EXPECT_EQ(set->bus().read(board::virtio_window(2).base().plus(kConfig).value(), 4), 42U);
  EXPECT_TRUE(std::filesystem::is_socket(path));
  const auto second = create(spec);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message(), "--vsock: " + path + ": another process listens there");
  set.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(DeviceSetTest, EveryQueueHasADoorbellOfItsOwn) {
  const auto set = create(spec_without_console()).value();
  const uint64_t doorbell = board::virtio_window(0).base().value() + 0x50;
  EXPECT_EQ(doorbells_.doorbells, (std::vector<std::pair<uint64_t, uint32_t>>{{doorbell, 0}}));
}

TEST_F(DeviceSetTest, WithoutRngThereIsNoVirtioDevice) {
  MachineSpec spec = spec_without_console();
  spec.rng = false;
  const auto set = create(spec).value();
  EXPECT_EQ(set->bus().read(board::virtio_window(0).base(), 4), 0U);
  EXPECT_TRUE(set->edge_interrupts().empty());
}

TEST_F(DeviceSetTest, EveryDeviceHasANode) {
  const auto set = create(spec_without_console()).value();
  devices::FdtNode root("");
  set->describe(root);
  for (const std::string_view name : {"serial@9000000", "rtc@9010000", "gpio@9020000", "gpio-keys", "pvpanic@9030000",
                                      "rng@b020000", "virtio_mmio@a000000"}) {
    EXPECT_TRUE(std::ranges::any_of(root.children(), [&](const auto& child) { return child.name() == name; })) << name;
  }
}

TEST_F(DeviceSetTest, AConsoleThatCannotBeOpenedIsAnErrorThatNamesIt) {
  MachineSpec spec = spec_without_console();
  spec.console = {.kind = ConsoleSpec::Kind::kFile, .path = "/nonexistent/console"};
  const auto set = create(spec);
  ASSERT_FALSE(set);
  EXPECT_TRUE(set.error().message().starts_with("--console: ")) << set.error().message();
}

TEST_F(DeviceSetTest, ADiskThatCannotBeOpenedLeavesTheFilesOfConsolesAlone) {
  const fakes::MemoryFile old_log("what an earlier machine said");
  MachineSpec spec = spec_without_console();
  spec.console = {.kind = ConsoleSpec::Kind::kFile, .path = old_log.path()};
  spec.disks = {{.path = "/nonexistent/disk", .id = "disk0", .read_only = false}};
  ASSERT_FALSE(create(spec));
  EXPECT_GT(std::filesystem::file_size(old_log.path()), 0U);
}

TEST_F(DeviceSetTest, DisksAreHandedOverAllOrNone) {
  const fakes::MemoryFile first(std::string(512, 'x'));
  const fakes::MemoryFile second(std::string(512, 'x'));
  MachineSpec spec = spec_without_console();
  spec.disks = {{.path = first.path(), .id = "disk0"}, {.path = second.path(), .id = "disk1"}};
  const auto source = create(spec).value();
  const auto target = create(spec, devices::DiskFile::Locking::kLater).value();
  EXPECT_TRUE(target->are_disks_locked_elsewhere());
  EXPECT_EQ(target->take_disks().error().code(), Errc::kBusy);
  source->release_disks();
  EXPECT_FALSE(target->are_disks_locked_elsewhere());
  {
    const auto third = devices::DiskFile::open(second.path(), devices::DiskFile::Access::kReadWrite);
    EXPECT_EQ(target->take_disks().error().code(), Errc::kBusy);
    EXPECT_TRUE(devices::DiskFile::open(first.path(), devices::DiskFile::Access::kReadWrite));
  }
  EXPECT_TRUE(target->take_disks());
  EXPECT_FALSE(source->take_disks());
}

TEST_F(DeviceSetTest, LocksTellNothingWithoutADiskToWriteTo) {
  const fakes::MemoryFile file(std::string(512, 'x'));
  MachineSpec spec = spec_without_console();
  spec.disks = {{.path = file.path(), .id = "disk0", .read_only = true}};
  const auto source = create(spec).value();
  const auto target = create(spec, devices::DiskFile::Locking::kLater).value();
  EXPECT_FALSE(source->has_writable_disk());
  EXPECT_FALSE(target->are_disks_locked_elsewhere());
  EXPECT_TRUE(target->take_disks());
}

TEST_F(DeviceSetTest, ADiskCannotHaveTheNameOfADeviceThatIsAlwaysThere) {
  const fakes::MemoryFile image(std::string(4096, 'd'));
  MachineSpec spec = spec_without_console();
  spec.disks = {{.path = image.path(), .id = "rng0", .read_only = false}};
  const auto set = create(spec);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message(), "two devices have the id 'rng0'");
}

TEST_F(DeviceSetTest, APanicEventIsACrashOfTheMachine) {
  const auto set = create(spec_without_console()).value();
  set->bus().write(board::kPvpanic.base(), 1, 1);
  EXPECT_EQ(events_.crashes, std::vector<std::string>{"the guest's kernel panicked"});
}

TEST_F(DeviceSetTest, AFloodOfCrashKernelEventsIsNoFloodOfLines) {
  const auto set = create(spec_without_console()).value();
  ::testing::internal::CaptureStderr();
  for (unsigned count = 0; count < 1000; ++count) {
    set->bus().write(board::kPvpanic.base(), 1, 2);
  }
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 10) << lines;  // the 1st, 2nd, 4th, …, 512th
}

TEST_F(DeviceSetTest, ANewGenerationIsInTheGuestsMemoryAndInterruptsIt) {
  const auto set = create(spec_without_console()).value();
  const auto slots = set->read_only_memory();
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].range.base(), GuestAddr(0x0b02'0000));
  EXPECT_EQ(slots[0].host.size(), slots[0].range.size());
  const std::vector<std::byte> before(slots[0].host.begin(), slots[0].host.end());
  ASSERT_TRUE(set->renew_generation());
  EXPECT_FALSE(std::ranges::equal(slots[0].host, before));
  EXPECT_EQ(irqs_.edge_count(devices::Intid::spi(4)), 1U);
}

TEST_F(DeviceSetTest, AnInterfaceThatIsNotThereIsAnErrorThatNamesIt) {
  MachineSpec spec = spec_without_console();
  spec.nets = {{.tap = "no-such-tap", .id = "net0", .mac = {}}};
  const auto set = create(spec);
  ASSERT_FALSE(set);
  EXPECT_TRUE(set.error().message().starts_with("--net: ")) << set.error().message();
}

TEST_F(DeviceSetTest, BackEndsAreToldByAbsolutePaths) {
  const fakes::MemoryFile image(std::string(4096, 'd'));
  MachineSpec spec = spec_without_console();
  spec.disks = {{.path = image.path(), .id = "root", .read_only = true}};
  spec.vsock = VsockSpec{.path = "device-set-relative", .guest_cid = 7};
  const auto set = create(spec).value();
  const auto& back_ends = set->back_ends();
  ASSERT_EQ(back_ends.size(), 3U);
  EXPECT_EQ(back_ends[0].kind, "disk");
  EXPECT_EQ(back_ends[0].id, "root");
  EXPECT_EQ(back_ends[0].facts[0].second, image.path());
  EXPECT_EQ(back_ends[0].facts[1].second, "read-only");
  EXPECT_EQ(back_ends[1].kind, "vsock");
  EXPECT_EQ(back_ends[1].facts[0].second, std::filesystem::current_path() / "device-set-relative");
  EXPECT_EQ(back_ends[2].id, "uart0");
  EXPECT_EQ(back_ends[2].facts[0].second, "none");
}

TEST_F(DeviceSetTest, TheBalloonIsAskedForNoMoreThanThereIs) {
  MachineSpec spec = spec_without_console();
  const auto without = create(spec).value();
  EXPECT_FALSE(without->balloon());
  EXPECT_EQ(without->set_balloon_target(0).error().code(), Errc::kUnsupported);
  spec.balloon = true;
  const auto set = create(spec).value();
  EXPECT_EQ(set->set_balloon_target(kRam.size() + 1).error().code(), Errc::kOutOfRange);
  ASSERT_TRUE(set->set_balloon_target(kRam.size() / 2));
  EXPECT_EQ(set->balloon()->target_bytes, kRam.size() / 2);
  EXPECT_EQ(set->balloon()->actual_bytes, 0U);
}

TEST_F(DeviceSetTest, ThePowerKeyReachesItsDevice) {
  const auto set = create(spec_without_console()).value();
  const auto addr = [](uint64_t offset) { return board::kGpio.base().plus(offset).value(); };
  constexpr uint64_t kAllPins = 0x3fc;
  EXPECT_EQ(set->bus().read(addr(kAllPins), 1), 0U);
  set->press_power_key();
  EXPECT_EQ(set->bus().read(addr(kAllPins), 1), 1U << devices::GpioPl061::kPowerKeyPin);
}

TEST_F(DeviceSetTest, AClientOfTheConsoleTypesAtTheGuest) {
  const auto set = create(spec_without_console()).value();
  EXPECT_EQ(set->check_console("hvc0").error().code(), Errc::kNotFound);
  ASSERT_TRUE(set->check_console("uart0"));
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd ours(ends[0]);
  set->attach_console("uart0", UniqueFd(ends[1]));
  loop_->run_ready();
  EXPECT_EQ(set->check_console("uart0").error().code(), Errc::kBusy);
  set->bus().write(board::kUart.base(), 1, 'x');
  std::array<char, 4> shown{};
  while (::recv(ours.get(), shown.data(), shown.size(), 0) != 1) {
    loop_->run_ready();
  }
  EXPECT_EQ(shown[0], 'x');
}

TEST_F(DeviceSetTest, PauseResetAndResumeReachEveryDevice) {
  const auto set = create(spec_without_console()).value();
  EXPECT_TRUE(set->pause());
  EXPECT_TRUE(set->reset());
  EXPECT_TRUE(set->resume());
}

}  // namespace
}  // namespace tandem
