// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "devices/backend/block_engine.hpp"
#include "devices/backend/entropy_source.hpp"
#include "devices/bus/device_executor.hpp"
#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "devices/pvpanic/pvpanic.hpp"
#include "devices/virtio_balloon/page_discard.hpp"
#include "tests/fakes/fake_char_backend.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_net_backend.hpp"
#include "tests/fakes/fake_ram.hpp"
#include "tests/fakes/fake_timer.hpp"
#include "tests/fakes/fake_vsock_host.hpp"
#include "tests/fakes/memory_file.hpp"
#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

using Random = std::mt19937_64;

/// The world around one device: all that it can be connected to.
class Bench : private PanicSink, private EntropySource, private PageDiscard {
 public:
  [[nodiscard]] IrqLine irq() { return {irq_sink, Intid::spi(0)}; }
  /// A timer that `stir` fires while it is armed. At most one per bench.
  [[nodiscard]] std::unique_ptr<Timer> timer();
  [[nodiscard]] PanicSink& panic_sink() { return *this; }
  [[nodiscard]] EntropySource& entropy() { return *this; }
  [[nodiscard]] PageDiscard& page_discard() { return *this; }
  /// An engine on a disk of some sectors.
  [[nodiscard]] std::unique_ptr<BlockEngine> block_engine();

  /// Lets something happen in the world: a key typed, time passing, work on the event loop.
  void stir(Random& random);

  std::unique_ptr<EventLoop> loop = EventLoop::create().value();  // a test that gets no epoll cannot go on
  DeviceExecutor executor{*loop};
  FakeRam ram{16U << 20};  // as much as the longest input of a fuzzer can make drivers allocate
  FakeIrqSink irq_sink;
  FakeClock clock{1'800'000'000'000'000'000};
  FakeCharBackend chars;
  FakeNetBackend net;
  FakeVsockHost vsock;

 private:
  void on_panic() override {}
  void on_crash_loaded() override {}
  Result<void> fill(std::span<std::byte> out) override;
  Result<void> discard(GuestRange range) override;
  FakeTimer* timer_ = nullptr;  // the device's
  std::unique_ptr<fakes::MemoryFile> disk_;
};

/// One device under test, with the world it lives in.
class Subject {
 public:
  virtual ~Subject() = default;
  [[nodiscard]] virtual Component& component() = 0;
  [[nodiscard]] virtual MmioHandler& handler() = 0;
  /// Does what a well-behaved driver might do.
  virtual void drive(Random& random) = 0;
  [[nodiscard]] Bench& bench() { return *bench_; }

 protected:
  // First to be made and last to go: the device is connected to it.
  std::unique_ptr<Bench> bench_ = std::make_unique<Bench>();
};

/// One row of the table: how to make a device.
struct DeviceRow {
  std::string name;
  uint64_t window_bytes;
  std::function<std::unique_ptr<Subject>()> make;
};
inline void PrintTo(const DeviceRow& row, std::ostream* out) { *out << row.name; }

/// Every device there is.
std::vector<DeviceRow> device_table();

}  // namespace tandem::devices
