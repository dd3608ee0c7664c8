// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/device_set.hpp"

#include <optional>

#include "devices/backend/create_char_backend.hpp"
#include "devices/backend/host_entropy.hpp"
#include "devices/backend/tap.hpp"
#include "devices/uart_pl011/uart_pl011.hpp"
#include "devices/virtio_mmio/virtio_mmio.hpp"
#include "devices/virtio_rng/virtio_rng.hpp"
#include "vmm/machine/board_fdt.hpp"
#include "vmm/machine/board_layout.hpp"

namespace tandem {

using devices::CharBackend;
using devices::CharBackendChoice;
using devices::FdtNode;
using devices::FdtPlacement;
using devices::Intid;
using devices::IrqLine;
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

namespace {

FdtPlacement place(GuestRange window, Intid intid) {
  return {.window = window, .intid = intid, .clock_phandle = board::kClockPhandle};
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
  TANDEM_TRY(set->add_platform_devices(spec));
  TANDEM_TRY(set->add_virtio_devices(spec));
  return set;
}

DeviceSet::DeviceSet(const Host& host) : host_(host) {}
DeviceSet::~DeviceSet() = default;

template <typename Device>
Result<void> DeviceSet::attach(std::unique_ptr<Parts> parts, Device& device, const FdtPlacement& placement) {
  TANDEM_TRY(bus_.map(placement.window, std::string(device.name()), device, parts->executor.mutex()));
  attached_.push_back(
      {.executor = &parts->executor, .component = &device, .describe = [&device, placement](FdtNode& root) {
         root.add_child(device.describe(placement));
       }});
  parts_.push_back(std::move(parts));
  return {};
}

Result<void> DeviceSet::add_platform_devices(const MachineSpec& spec) { return add_uart(spec.console); }

Result<void> DeviceSet::add_uart(const ConsoleSpec& console) {
  struct UartParts final : Parts {
    using Parts::Parts;
    std::unique_ptr<CharBackend> backend;
    std::optional<devices::UartPl011> device;
  };
  auto parts = std::make_unique<UartParts>(host_.loop);
  parts->backend = TANDEM_TRY(
      with_context(devices::create_char_backend(choice_of(console, host_.events), parts->executor), "--console"));
  auto& device = parts->device.emplace("uart0", IrqLine(host_.irqs, board::kUartIrq), *parts->backend);
  return attach(std::move(parts), device, place(board::kUart, board::kUartIrq));
}

/// The order is ABI: it gives each device its slot.
Result<void> DeviceSet::add_virtio_devices(const MachineSpec& spec) {
  if (spec.rng) {
    TANDEM_TRY(add_rng());
  }
  return {};
}

Result<void> DeviceSet::attach_virtio(std::unique_ptr<VirtioParts> parts) {
  if (virtio_slots_used_ == board::kVirtioSlots) {
    return fail(Errc::kOutOfRange, "more than {} virtio devices", board::kVirtioSlots);
  }
  const unsigned slot = virtio_slots_used_++;
  const GuestRange window = board::virtio_window(slot);
  const Intid intid = board::virtio_irq(slot);
  VirtioMmio& transport =
      parts->transport.emplace(fmt::format("{}-transport", parts->virtio().name()), IrqLine(host_.irqs, intid),
                               parts->virtio(), host_.memory, parts->executor);
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
  return attach(std::move(parts), transport, place(window, intid));
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

std::vector<Intid> DeviceSet::edge_interrupts() const {
  std::vector<Intid> intids;
  for (unsigned slot = 0; slot < virtio_slots_used_; ++slot) {
    intids.push_back(board::virtio_irq(slot));
  }
  return intids;
}

void DeviceSet::describe(FdtNode& root) const {
  for (const Attached& attached : attached_) {
    attached.describe(root);
  }
}

Result<void> DeviceSet::for_each_component(Result<void> (Component::*call)()) {
  for (const Attached& attached : attached_) {
    const std::lock_guard lock(attached.executor->mutex());
    TANDEM_TRY(with_context((attached.component->*call)(), attached.component->name()));
  }
  return {};
}

Result<void> DeviceSet::pause() { return for_each_component(&Component::pause); }
Result<void> DeviceSet::resume() { return for_each_component(&Component::resume); }
Result<void> DeviceSet::reset() { return for_each_component(&Component::reset); }

}  // namespace tandem
