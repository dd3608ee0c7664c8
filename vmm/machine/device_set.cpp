// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/device_set.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "devices/backend/block_engine.hpp"
#include "devices/backend/create_char_backend.hpp"
#include "devices/backend/disk_file.hpp"
#include "devices/backend/host_entropy.hpp"
#include "devices/backend/loop_timer.hpp"
#include "devices/backend/tap.hpp"
#include "devices/backend/tapped_backend.hpp"
#include "devices/backend/unix_vsock_host.hpp"
#include "devices/gpio_pl061/gpio_pl061.hpp"
#include "devices/pvpanic/pvpanic.hpp"
#include "devices/rtc_pl031/rtc_pl031.hpp"
#include "devices/uart_pl011/uart_pl011.hpp"
#include "devices/virtio_balloon/virtio_balloon.hpp"
#include "devices/virtio_blk/virtio_blk.hpp"
#include "devices/virtio_console/virtio_console.hpp"
#include "devices/virtio_mmio/virtio_mmio.hpp"
#include "devices/virtio_net/virtio_net.hpp"
#include "devices/virtio_rng/virtio_rng.hpp"
#include "devices/virtio_vsock/virtio_vsock.hpp"
#include "devices/vmgenid/vmgenid.hpp"
#include "vmm/lib/clock/clock.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/machine/board_fdt.hpp"
#include "vmm/machine/board_layout.hpp"

namespace tandem {

using devices::CharBackend;
using devices::CharBackendChoice;
using devices::FdtNode;
using devices::FdtPlacement;
using devices::Intid;
using devices::IrqLine;
using devices::LoopTimer;
using devices::VirtioDevice;
using devices::VirtioMmio;

struct DeviceSet::Parts {
  explicit Parts(EventLoop& loop) : executor(loop) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  virtual ~Parts() = default;

  devices::DeviceExecutor executor;
};

struct DeviceSet::VirtioParts : Parts {
  using Parts::Parts;
  [[nodiscard]] virtual VirtioDevice& virtio() = 0;

  std::optional<VirtioMmio> transport;
  std::vector<UniqueFd> doorbells;                 // by queue
  std::vector<EventLoop::Watch> doorbell_watches;  // after doorbells: they end before the descriptors are closed
};

struct DeviceSet::VmGenIdParts final : Parts {
  using Parts::Parts;
  devices::HostEntropy entropy;
  std::unique_ptr<devices::VmGenId> device;
};

namespace {

FdtPlacement place(GuestRange window, Intid intid) {
  return {.window = window, .intid = intid, .clock_phandle = board::kClockPhandle};
}

/// For those who stand in another directory. What cannot be made absolute stays as it is.
std::string absolute(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::absolute(path, failed);
  return failed ? path : found.lexically_normal().string();
}

CharBackendChoice choice_of(const ConsoleSpec& spec, MachineEvents& events) {
  const auto kind = [&] {
    switch (spec.kind) {
      case ConsoleSpec::Kind::kNone:
        return CharBackendChoice::Kind::kNone;
      case ConsoleSpec::Kind::kStdio:
        return CharBackendChoice::Kind::kStdio;
      case ConsoleSpec::Kind::kPty:
        return CharBackendChoice::Kind::kPty;
      case ConsoleSpec::Kind::kFile:
        return CharBackendChoice::Kind::kFile;
      case ConsoleSpec::Kind::kSocket:
        return CharBackendChoice::Kind::kSocket;
    }
    TANDEM_UNREACHABLE("every kind returns above");
  }();
  return {.kind = kind, .path = spec.path, .on_quit = [&events] { events.on_quit(); }};
}

}  // namespace

Result<std::unique_ptr<DeviceSet>> DeviceSet::create(const MachineSpec& spec, const Host& host) {
  std::unique_ptr<DeviceSet> set(new DeviceSet(host));
  // Consoles come last: to open one can truncate a file, which is not to happen for a machine that does not come to be.
  TANDEM_TRY(set->add_virtio_devices(spec));
  TANDEM_TRY(set->add_platform_devices(spec));
  return set;
}

DeviceSet::DeviceSet(const Host& host) : host_(host) {}
DeviceSet::~DeviceSet() = default;

template <typename Device>
Result<void> DeviceSet::attach(std::unique_ptr<Parts> parts, Device& device, GuestRange window, Describe describe) {
  TANDEM_TRY(bus_.map(window, std::string(device.name()), device, parts->executor.mutex()));
  attached_.push_back({.executor = &parts->executor, .component = &device, .describe = std::move(describe)});
  parts_.push_back(std::move(parts));
  return {};
}

Result<void> DeviceSet::add_platform_devices(const MachineSpec& spec) {
  TANDEM_TRY(add_uart(spec.console));
  TANDEM_TRY(add_rtc());
  TANDEM_TRY(add_power_key());
  TANDEM_TRY(add_pvpanic());
  return add_vmgenid();
}

Result<std::unique_ptr<devices::TappedBackend>> DeviceSet::open_console(const ConsoleSpec& console,
                                                                        const std::string& device,
                                                                        devices::DeviceExecutor& executor) {
  auto inner = TANDEM_TRY(devices::create_char_backend(choice_of(console, host_.events), executor));
  auto backend = TANDEM_TRY(devices::TappedBackend::create(executor, std::move(inner)));
  const bool has_path = console.kind == ConsoleSpec::Kind::kFile || console.kind == ConsoleSpec::Kind::kSocket;
  const std::string endpoint = has_path ? absolute(console.path) : backend->endpoint();
  back_ends_.push_back({.kind = "console", .id = device, .facts = {{"endpoint", endpoint}}});
  consoles_.emplace(device, Reached<devices::TappedBackend>{.executor = &executor, .device = backend.get()});
  return backend;
}

Result<void> DeviceSet::add_uart(const ConsoleSpec& console) {
  struct UartParts final : Parts {
    using Parts::Parts;
    std::unique_ptr<devices::TappedBackend> backend;
    std::optional<devices::UartPl011> device;
  };
  auto parts = std::make_unique<UartParts>(host_.loop);
  parts->backend = TANDEM_TRY(with_context(open_console(console, "uart0", parts->executor), "--console"));
  auto& device = parts->device.emplace("uart0", IrqLine(host_.irqs, board::kUartIrq), *parts->backend);
  return attach(std::move(parts), device, board::kUart,
                [&device](FdtNode& root) { root.add_child(device.describe(place(board::kUart, board::kUartIrq))); });
}

Result<void> DeviceSet::add_rtc() {
  struct RtcParts final : Parts {
    using Parts::Parts;
    HostClock clock;
    std::optional<devices::RtcPl031> device;
  };
  auto parts = std::make_unique<RtcParts>(host_.loop);
  auto alarm = TANDEM_TRY(LoopTimer::create(parts->executor, LoopTimer::Base::kRealtime));
  auto& device = parts->device.emplace("rtc0", IrqLine(host_.irqs, board::kRtcIrq), parts->clock, std::move(alarm));
  clock_ = {.executor = &parts->executor, .device = &device};
  return attach(std::move(parts), device, board::kRtc,
                [&device](FdtNode& root) { root.add_child(device.describe(place(board::kRtc, board::kRtcIrq))); });
}

Result<void> DeviceSet::add_power_key() {
  struct GpioParts final : Parts {
    using Parts::Parts;
    std::optional<devices::GpioPl061> device;
  };
  auto parts = std::make_unique<GpioParts>(host_.loop);
  auto release = TANDEM_TRY(LoopTimer::create(parts->executor, LoopTimer::Base::kMonotonic));
  auto& device = parts->device.emplace("gpio0", IrqLine(host_.irqs, board::kGpioIrq), std::move(release));
  power_key_ = {.executor = &parts->executor, .device = &device};
  return attach(std::move(parts), device, board::kGpio, [&device](FdtNode& root) {
    root.add_child(device.describe(place(board::kGpio, board::kGpioIrq), board::kGpioPhandle));
    root.add_child(devices::GpioPl061::describe_power_key(board::kGpioPhandle));
  });
}

Result<void> DeviceSet::add_pvpanic() {
  struct PanicParts final : Parts, devices::PanicSink {
    PanicParts(EventLoop& loop, MachineEvents& events) : Parts(loop), machine(events), device("pvpanic0", *this) {}
    void on_panic() override { machine.on_crash("the guest's kernel panicked"); }
    void on_crash_loaded() override {
      if (const uint64_t count = crashes_loaded.count(); count != 0) {
        log::info("the guest's kernel panicked, and goes on in its crash kernel (time {})", count);
      }
    }
    MachineEvents& machine;
    log::RateLimit crashes_loaded;
    devices::PvPanic device;
  };
  auto parts = std::make_unique<PanicParts>(host_.loop, host_.events);
  auto& device = parts->device;
  return attach(std::move(parts), device, board::kPvpanic,
                [&device](FdtNode& root) { root.add_child(device.describe(board::kPvpanic)); });
}

Result<void> DeviceSet::add_vmgenid() {
  auto parts = std::make_unique<VmGenIdParts>(host_.loop);
  parts->device =
      TANDEM_TRY(devices::VmGenId::create("vmgenid", IrqLine(host_.irqs, board::kVmGenIdIrq), parts->entropy));
  auto& device = *parts->device;
  vmgenid_ = parts.get();
  return attach(std::move(parts), device, board::kVmGenId, [&device](FdtNode& root) {
    root.add_child(device.describe(place(board::kVmGenId, board::kVmGenIdIrq)));
  });
}

/// The order is ABI: it gives each device its slot.
Result<void> DeviceSet::add_virtio_devices(const MachineSpec& spec) {
  for (const DiskSpec& disk : spec.disks) {
    TANDEM_TRY(with_context(add_disk(disk), "--disk"));
  }
  for (const NetSpec& net : spec.nets) {
    TANDEM_TRY(with_context(add_net(net), "--net"));
  }
  if (spec.hvc) {
    TANDEM_TRY(with_context(add_console(*spec.hvc), "--hvc"));
  }
  if (spec.rng) {
    TANDEM_TRY(add_rng());
  }
  if (spec.balloon) {
    TANDEM_TRY(add_balloon());
  }
  if (spec.vsock) {
    TANDEM_TRY(with_context(add_vsock(*spec.vsock), "--vsock"));
  }
  return {};
}

Result<void> DeviceSet::attach_virtio(std::unique_ptr<VirtioParts> parts) {
  if (virtio_slots_used_ == board::kVirtioSlots) {
    return fail(Errc::kOutOfRange, "more than {} virtio devices", board::kVirtioSlots);
  }
  const std::string name = fmt::format("{}-transport", parts->virtio().name());
  if (std::ranges::any_of(attached_, [&name](const Attached& other) { return other.component->name() == name; })) {
    return fail(Errc::kInvalidArgument, "two devices have the id '{}'", parts->virtio().name());
  }
  const unsigned slot = virtio_slots_used_++;
  const GuestRange window = board::virtio_window(slot);
  const Intid intid = board::virtio_irq(slot);
  VirtioMmio& transport =
      parts->transport.emplace(name, IrqLine(host_.irqs, intid), parts->virtio(), host_.memory, parts->executor);
  const GuestAddr doorbell = window.base().plus(VirtioMmio::doorbell_offset()).value();
  for (uint16_t queue = 0; queue < transport.queue_count(); ++queue) {
    UniqueFd event = TANDEM_TRY(create_eventfd());
    TANDEM_TRY(host_.doorbells.add_doorbell(doorbell, queue, event.get()));
    parts->doorbell_watches.push_back(
        TANDEM_TRY(parts->executor.watch(event.get(), Events::kReadable, [&transport, queue, fd = event.get()](Events) {
          drain_eventfd(fd);
          transport.notify(queue);
        })));
    parts->doorbells.push_back(std::move(event));
  }
  return attach(std::move(parts), transport, window,
                [where = place(window, intid)](FdtNode& root) { root.add_child(VirtioMmio::describe(where)); });
}

Result<void> DeviceSet::add_disk(const DiskSpec& disk) {
  struct DiskParts final : VirtioParts {
    using VirtioParts::VirtioParts;
    VirtioDevice& virtio() override { return *device; }
    std::unique_ptr<devices::VirtioBlk> device;
  };
  using Access = devices::DiskFile::Access;
  auto parts = std::make_unique<DiskParts>(host_.loop);
  auto file = TANDEM_TRY(
      devices::DiskFile::open(disk.path, disk.read_only ? Access::kReadOnly : Access::kReadWrite, host_.disk_locking));
  auto engine = TANDEM_TRY(devices::create_block_engine(std::move(file), devices::VirtioBlk::kQueueSize));
  disks_.push_back(&engine->disk());
  back_ends_.push_back({.kind = "disk",
                        .id = disk.id,
                        .facts = {{"path", absolute(disk.path)},
                                  {"access", disk.read_only ? "read-only" : "read-write"},
                                  {"size", std::to_string(engine->disk().size_bytes())},
                                  {"engine", std::string(engine->name())}}});
  parts->device = TANDEM_TRY(devices::VirtioBlk::create(disk.id, disk.id, std::move(engine), parts->executor));
  return attach_virtio(std::move(parts));
}

Result<void> DeviceSet::add_net(const NetSpec& net) {
  struct NetParts final : VirtioParts {
    using VirtioParts::VirtioParts;
    VirtioDevice& virtio() override { return *device; }
    std::unique_ptr<devices::TapBackend> tap;
    std::optional<devices::VirtioNet> device;
  };
  auto parts = std::make_unique<NetParts>(host_.loop);
  parts->tap = TANDEM_TRY(devices::TapBackend::open(net.tap, parts->executor));
  TANDEM_ASSERT(net.mac.has_value(), "whoever makes a machine gives each of its networks an address");
  const devices::MacAddress mac = *net.mac;
  parts->device.emplace(net.id, mac, parts->executor, *parts->tap);
  nets_.emplace_back(&parts->executor, &*parts->device);
  back_ends_.push_back(
      {.kind = "net", .id = net.id, .facts = {{"tap", net.tap}, {"mac", fmt::format("{:02x}", fmt::join(mac, ":"))}}});
  return attach_virtio(std::move(parts));
}

Result<void> DeviceSet::add_console(const ConsoleSpec& console) {
  struct ConsoleParts final : VirtioParts {
    using VirtioParts::VirtioParts;
    VirtioDevice& virtio() override { return *device; }
    std::unique_ptr<devices::TappedBackend> backend;
    std::optional<devices::VirtioConsole> device;
  };
  auto parts = std::make_unique<ConsoleParts>(host_.loop);
  parts->backend = TANDEM_TRY(open_console(console, "hvc0", parts->executor));
  parts->device.emplace("hvc0", parts->executor, *parts->backend);
  return attach_virtio(std::move(parts));
}

Result<void> DeviceSet::add_rng() {
  struct RngParts final : VirtioParts {
    explicit RngParts(EventLoop& loop) : VirtioParts(loop), device("rng0", executor, entropy) {}
    VirtioDevice& virtio() override { return device; }
    devices::HostEntropy entropy;
    devices::VirtioRng device;
  };
  return attach_virtio(std::make_unique<RngParts>(host_.loop));
}

Result<void> DeviceSet::add_balloon() {
  struct BalloonParts final : VirtioParts, devices::PageDiscard {
    BalloonParts(EventLoop& loop, GuestRam& guest_ram, const GuestMemory& guest_memory)
        : VirtioParts(loop),
          ram(guest_ram),
          memory(guest_memory),
          device("balloon0", executor, *this, host_page_size()) {}
    VirtioDevice& virtio() override { return device; }
    Result<void> discard(GuestRange range) override {
      auto discarded = ram.discard(range);
      memory.mark_written(range);  // zeros have taken the place of what was there
      return discarded;
    }
    GuestRam& ram;
    const GuestMemory& memory;
    devices::VirtioBalloon device;
  };
  auto parts = std::make_unique<BalloonParts>(host_.loop, host_.ram, host_.memory);
  balloon_ = {.executor = &parts->executor, .device = &parts->device};
  return attach_virtio(std::move(parts));
}

Result<void> DeviceSet::add_vsock(const VsockSpec& vsock) {
  struct VsockParts final : VirtioParts {
    using VirtioParts::VirtioParts;
    VirtioDevice& virtio() override { return *device; }
    std::unique_ptr<devices::UnixVsockHost> host;
    std::optional<devices::VirtioVsock> device;
  };
  auto parts = std::make_unique<VsockParts>(host_.loop);
  parts->host = TANDEM_TRY(devices::UnixVsockHost::create(parts->executor, vsock.path));
  auto timer = TANDEM_TRY(LoopTimer::create(parts->executor, LoopTimer::Base::kMonotonic));
  parts->device.emplace("vsock0", vsock.guest_cid,
                        devices::VirtioVsock::Connections{
                            .executor = parts->executor, .host = *parts->host, .event_timer = std::move(timer)});
  back_ends_.push_back({.kind = "vsock",
                        .id = "vsock0",
                        .facts = {{"path", absolute(vsock.path)}, {"cid", std::to_string(vsock.guest_cid)}}});
  return attach_virtio(std::move(parts));
}

Result<void> DeviceSet::take_disks() {
  for (const devices::DiskFile* const disk : disks_) {
    if (auto locked = disk->take_lock(); !locked) {
      release_disks();
      return locked;
    }
  }
  return {};
}

void DeviceSet::release_disks() {
  for (const devices::DiskFile* const disk : disks_) {
    disk->drop_lock();
  }
}

bool DeviceSet::has_writable_disk() const {
  return std::ranges::any_of(disks_, [](const devices::DiskFile* disk) { return !disk->is_read_only(); });
}

bool DeviceSet::are_disks_locked_elsewhere() const {
  return has_writable_disk() && std::ranges::all_of(disks_, [](const devices::DiskFile* disk) {
           return disk->is_read_only() || disk->is_locked_elsewhere();
         });
}

void DeviceSet::announce() {
  for (const auto& [executor, net] : nets_) {
    const std::lock_guard lock(executor->mutex());
    net->announce();
  }
}

std::vector<Intid> DeviceSet::edge_interrupts() const {
  std::vector<Intid> intids;
  for (unsigned slot = 0; slot < virtio_slots_used_; ++slot) {
    intids.push_back(board::virtio_irq(slot));
  }
  return intids;
}

std::vector<DeviceSet::ReadOnlyMemory> DeviceSet::read_only_memory() const {
  return {{.range = board::kVmGenId, .host = vmgenid_->device->memory()}};
}

void DeviceSet::go_on_from_pause() {
  const std::lock_guard lock(clock_->executor->mutex());
  clock_->device->go_on_from_pause();
}

Result<void> DeviceSet::renew_generation() {
  const std::lock_guard lock(vmgenid_->executor.mutex());
  return vmgenid_->device->renew();
}

void DeviceSet::describe(FdtNode& root) const {
  for (const Attached& attached : attached_) {
    attached.describe(root);
  }
}

Result<void> DeviceSet::for_each_component(const std::function<Result<void>(Component&)>& visit) {
  for (const Attached& attached : attached_) {
    const std::lock_guard lock(attached.executor->mutex());
    TANDEM_TRY(visit(*attached.component));
  }
  return {};
}

Result<void> DeviceSet::pause() {
  return for_each_component([](Component& device) { return with_context(device.pause(), device.name()); });
}

Result<void> DeviceSet::resume() {
  return for_each_component([](Component& device) { return with_context(device.resume(), device.name()); });
}

Result<void> DeviceSet::reset() {
  return for_each_component([](Component& device) { return with_context(device.reset(), device.name()); });
}

Result<void> DeviceSet::save(MachineState& state) {
  return for_each_component([&state](Component& device) { return save_into(state, device); });
}

Result<void> DeviceSet::restore(SavedComponents& saved) {
  return for_each_component([&saved](Component& device) { return saved.restore(device); });
}

void DeviceSet::press_power_key() {
  const std::lock_guard lock(power_key_->executor->mutex());
  power_key_->device->press_power_key();
}

Result<void> DeviceSet::check_console(std::string_view device) const {
  const auto console = consoles_.find(device);
  if (console == consoles_.end()) {
    return fail(Errc::kNotFound, "there is no console {}", device);
  }
  const std::lock_guard lock(console->second.executor->mutex());
  return console->second.device->is_free() ? Result<void>()
                                           : fail(Errc::kBusy, "another client is attached to the console");
}

void DeviceSet::attach_console(std::string_view device, UniqueFd client) {
  const auto console = consoles_.find(device);
  TANDEM_ASSERT(console != consoles_.end(), "the console was checked");
  // A task has to be one that can be copied.
  console->second.executor->post(
      [backend = console->second.device, shared = std::make_shared<UniqueFd>(std::move(client))] {
        if (const auto attached = backend->attach(std::move(*shared)); !attached) {
          log::warn("console: {}", attached.error().message());
        }
      });
}

Result<void> DeviceSet::set_balloon_target(uint64_t bytes) {
  if (!balloon_) {
    return fail(Errc::kUnsupported, "the virtual machine has no balloon (tandem run --balloon)");
  }
  if (bytes > host_.ram.range().size()) {
    return fail(Errc::kOutOfRange, "{} bytes are more than the guest's {}", bytes, host_.ram.range().size());
  }
  const std::lock_guard lock(balloon_->executor->mutex());
  return balloon_->device->set_target(bytes);
}

std::optional<BalloonStatus> DeviceSet::balloon() const {
  if (!balloon_) {
    return std::nullopt;
  }
  const std::lock_guard lock(balloon_->executor->mutex());
  return BalloonStatus{.target_bytes = balloon_->device->target_bytes(),
                       .actual_bytes = balloon_->device->actual_bytes()};
}

}  // namespace tandem
