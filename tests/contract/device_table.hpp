// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "devices/bus/irq_line.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "devices/pvpanic/pvpanic.hpp"
#include "tests/fakes/fake_char_backend.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_irq_sink.hpp"
#include "tests/fakes/fake_timer.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::devices {

using Random = std::mt19937_64;

/// The world around one device: all that it can be connected to.
class Bench : private PanicSink {
 public:
  [[nodiscard]] IrqLine irq() { return {irq_sink, Intid::spi(0)}; }
  /// A timer that `stir` fires while it is armed. At most one per bench.
  [[nodiscard]] std::unique_ptr<Timer> timer();
  [[nodiscard]] PanicSink& panic_sink() { return *this; }

  /// Lets something happen in the world: a key typed, time passing.
  void stir(Random& random);

  FakeIrqSink irq_sink;
  FakeClock clock{1'800'000'000'000'000'000};
  FakeCharBackend chars;

 private:
  void on_panic() override {}
  void on_crash_loaded() override {}
  FakeTimer* timer_ = nullptr;  // the device's
};

/// One device under test, with the world it lives in.
class Subject {
 public:
  virtual ~Subject() = default;
  [[nodiscard]] virtual Component& component() = 0;
  [[nodiscard]] virtual MmioHandler& handler() = 0;
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
