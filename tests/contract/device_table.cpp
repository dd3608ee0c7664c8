// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/device_table.hpp"

#include <utility>

#include "devices/gpio_pl061/gpio_pl061.hpp"
#include "devices/rtc_pl031/rtc_pl031.hpp"
#include "devices/uart_pl011/uart_pl011.hpp"

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

 private:
  std::unique_ptr<Device> device_;
};

template <typename Device, typename Make>
DeviceRow row(std::string name, Make make) {
  return {std::move(name), Device::kWindowBytes, [make] { return std::make_unique<MmioDeviceSubject<Device>>(make); }};
}

}  // namespace

std::vector<DeviceRow> device_table() {
  using std::make_unique;
  return {
      row<UartPl011>("uart_pl011", [](Bench& b) { return make_unique<UartPl011>("uart0", b.irq(), b.chars); }),
      row<RtcPl031>("rtc_pl031", [](Bench& b) { return make_unique<RtcPl031>("rtc0", b.irq(), b.clock, b.timer()); }),
      row<GpioPl061>("gpio_pl061", [](Bench& b) { return make_unique<GpioPl061>("gpio0", b.irq(), b.timer()); }),
      row<PvPanic>("pvpanic", [](Bench& b) { return make_unique<PvPanic>("pvpanic0", b.panic_sink()); }),
  };
}

std::unique_ptr<Timer> Bench::timer() {
  auto timer = std::make_unique<FakeTimer>();
  timer_ = timer.get();
  return timer;
}

void Bench::stir(Random& random) {
  switch (random() % 3) {
    case 0:
      chars.type("some input");
      break;
    case 1:
      clock.advance_ns(static_cast<int64_t>(random() % 10'000'000'000));
      break;
    default:
      if (timer_ != nullptr && timer_->is_armed()) {
        timer_->fire();
      }
      break;
  }
}

}  // namespace tandem::devices
