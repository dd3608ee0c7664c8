// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/device_table.hpp"

#include <algorithm>
#include <utility>

#include "devices/gpio_pl061/gpio_pl061.hpp"
#include "devices/rtc_pl031/rtc_pl031.hpp"
#include "devices/uart_pl011/uart_pl011.hpp"
#include "devices/virtio_balloon/virtio_balloon.hpp"
#include "devices/virtio_blk/virtio_blk.hpp"
#include "devices/virtio_console/virtio_console.hpp"
#include "devices/virtio_mmio/virtio_mmio.hpp"
#include "devices/virtio_mmio/virtio_mmio_regs.hpp"
#include "devices/virtio_net/virtio_net.hpp"
#include "devices/virtio_rng/virtio_rng.hpp"
#include "devices/virtio_vsock/virtio_vsock.hpp"
#include "devices/vmgenid/vmgenid.hpp"
#include "pv/host/vcpu_state.hpp"
#include "tests/fakes/fake_block_engine.hpp"
#include "tests/fakes/fake_vcpu_state_backend.hpp"
#include "tests/fakes/guest_queue.hpp"
#include "tests/fakes/guest_virtio_mmio.hpp"

namespace tandem::devices {
namespace {

/// A device that is both component and handler.
template <typename Device>
class MmioDeviceSubject final : public Subject {
 public:
  template <typename Make>
  explicit MmioDeviceSubject(const Make& make) : device_(make(*bench_)) {}
  [[nodiscard]] Component& component() override { return *device_; }
  [[nodiscard]] MmioHandler& handler() override { return *device_; }
  void drive(Random& /*random*/) override {}  // its registers are all there is

 private:
  std::unique_ptr<Device> device_;
};

/// PV vCPU state, whose driver makes calls. No vCPU is ever preempted: what records hold does not travel, by contract.
class PvVcpuStateSubject final : public Subject {
 public:
  [[nodiscard]] Component& component() override { return state_; }
  [[nodiscard]] MmioHandler& handler() override { return state_; }

  void drive(Random& random) override {
    const auto function = static_cast<uint32_t>(PV_VCPU_STATE_FEATURES + random() % (PV_VCPU_STATE_CALLS + 1));
    const auto vcpu = static_cast<unsigned>(random() % kVcpus);
    state_.call({.conduit = Hypercall::Conduit::kHvc, .function = function, .arguments = {}, .vcpu = vcpu});
  }

 private:
  static constexpr unsigned kVcpus = 8;
  pv::FakeVcpuStateBackend backend_;
  pv::VcpuState state_{backend_, GuestRange::fixed(0x1'0000, pv::VcpuState::kWindowBytes), kVcpus};
};

/// A virtio device behind the virtio-mmio transport.
class VirtioSubject final : public Subject {
 public:
  template <typename Make>
  explicit VirtioSubject(const Make& make) : Subject(), device_(make(*bench_)) {}
  [[nodiscard]] Component& component() override { return transport_; }
  [[nodiscard]] MmioHandler& handler() override { return transport_; }

  /// Sets the device up anew and gives each queue a buffer.
  void drive(Random& random) override {
    constexpr uint16_t kMostBuffers = 16;
    const GuestVirtioMmio driver(transport_);
    driver.write(virtio_mmio::Status, 0);
    if (!driver.negotiate(driver.offered_features())) {
      return;
    }
    std::vector<GuestQueue> queues;
    for (const uint16_t max_size : device_->queue_sizes()) {
      queues.emplace_back(bench_->ram, std::min(max_size, kMostBuffers));
      driver.set_up_queue(static_cast<uint16_t>(queues.size() - 1), queues.back().state());
    }
    driver.set_driver_ok();
    for (uint16_t index = 0; index < queues.size(); ++index) {
      queues.at(index).chain().readable(random()).readable(random()).writable(random() % 512).submit();
      transport_.notify(index);
    }
  }

 private:
  std::unique_ptr<VirtioDevice> device_;
  VirtioMmio transport_{"virtio0", bench_->irq(), *device_, bench_->ram.memory(), bench_->executor};
};

template <typename Device, typename Make>
DeviceRow row(std::string name, Make make) {
  return {std::move(name), Device::kWindowBytes, [make] { return std::make_unique<MmioDeviceSubject<Device>>(make); }};
}

template <typename Make>
DeviceRow virtio(std::string name, Make make) {
  return {std::move(name), VirtioMmio::kWindowBytes, [make] { return std::make_unique<VirtioSubject>(make); }};
}

constexpr MacAddress kMac{0x02, 0, 0, 0, 0, 1};

}  // namespace

std::vector<DeviceRow> device_table() {
  using std::make_unique;
  return {
      row<UartPl011>("uart_pl011", [](Bench& b) { return make_unique<UartPl011>("uart0", b.irq(), b.chars); }),
      row<RtcPl031>("rtc_pl031", [](Bench& b) { return make_unique<RtcPl031>("rtc0", b.irq(), b.clock, b.timer()); }),
      row<GpioPl061>("gpio_pl061", [](Bench& b) { return make_unique<GpioPl061>("gpio0", b.irq(), b.timer()); }),
      row<PvPanic>("pvpanic", [](Bench& b) { return make_unique<PvPanic>("pvpanic0", b.panic_sink()); }),
      row<VmGenId>("vmgenid", [](Bench& b) { return VmGenId::create("vmgenid", b.irq(), b.entropy()).value(); }),
      virtio("virtio_blk",
             [](Bench& b) { return VirtioBlk::create("disk0", "serial", b.block_engine(), b.executor).value(); }),
      virtio("virtio_net", [](Bench& b) { return make_unique<VirtioNet>("net0", kMac, b.executor, b.net); }),
      virtio("virtio_console", [](Bench& b) { return make_unique<VirtioConsole>("hvc0", b.executor, b.chars); }),
      virtio("virtio_balloon",
             [](Bench& b) { return make_unique<VirtioBalloon>("balloon0", b.executor, b.page_discard(), 4096); }),
      virtio("virtio_vsock",
             [](Bench& b) {
               return make_unique<VirtioVsock>(
                   "vsock0", VirtioVsock::kFirstGuestCid,
                   VirtioVsock::Connections{.executor = b.executor, .host = b.vsock, .event_timer = b.timer()});
             }),
      {"pv_vcpu_state", pv::VcpuState::kWindowBytes, [] { return make_unique<PvVcpuStateSubject>(); }},
      virtio("virtio_rng", [](Bench& b) { return make_unique<VirtioRng>("rng0", b.executor, b.entropy()); }),
  };
}

std::unique_ptr<Timer> Bench::timer() {
  auto timer = std::make_unique<FakeTimer>();
  timer_ = timer.get();
  return timer;
}

void Bench::stir(Random& random) {
  switch (random() % 6) {
    case 0:
      chars.type("some input");
      break;
    case 1:
      clock.advance_ns(static_cast<int64_t>(random() % 10'000'000'000));
      break;
    case 2:
      loop->run_ready();
      break;
    case 3:
      net.arrive(FakeNetBackend::Packet(random() % 2000));
      break;
    case 4:
      if (vsock.client() != nullptr && vsock.is_accepting()) {
        vsock.dial(static_cast<uint32_t>(random() % 4));
      }
      break;
    default:
      if (timer_ != nullptr && timer_->is_armed()) {
        timer_->fire();
      }
      break;
  }
}

std::unique_ptr<BlockEngine> Bench::block_engine() {
  constexpr size_t kDiskBytes = 32768;
  disk_ = std::make_unique<fakes::MemoryFile>(std::string(kDiskBytes, 'd'));
  // The file was made a moment ago.
  return std::make_unique<FakeBlockEngine>(DiskFile::open(disk_->path(), DiskFile::Access::kReadWrite).value());
}

Result<void> Bench::discard(GuestRange range) {
  TANDEM_ASSERT(ram.range().contains(range), "devices discard nothing but guest RAM");
  return {};
}

Result<void> Bench::fill(std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0x5a});
  return {};
}

}  // namespace tandem::devices
