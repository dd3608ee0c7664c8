// SPDX-License-Identifier: Apache-2.0
// Accesses to the UART with input arriving between them; saved state of every moment is accepted again.
#include "devices/uart_pl011/uart_pl011.hpp"

#include <cstdlib>
#include <string>

#include "tests/fakes/fake_char_backend.hpp"
#include "tests/fuzz/mmio_sequence.hpp"

using tandem::devices::FakeCharBackend;
using tandem::devices::IrqLine;
using tandem::devices::UartPl011;

namespace {

void save_and_restore(UartPl011& uart) {
  if (!uart.pause()) {
    std::abort();
  }
  const auto saved = uart.save();
  if (!saved || !uart.restore(*saved) || uart.save() != *saved || !uart.resume()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  tandem::fuzz::InputReader input(bytes, size);
  FakeCharBackend backend;
  UartPl011 uart("uart0", IrqLine::detached(), backend);
  tandem::fuzz::run_mmio_sequence(uart, UartPl011::kWindowBytes, input, [&](uint8_t what) {
    if (what < 128) {
      backend.type(std::string(what, 'x'));
    } else {
      save_and_restore(uart);
    }
    backend.deliver();
  });
  return 0;
}
