// SPDX-License-Identifier: Apache-2.0
// One device of the contract suite's table, and a sequence of what a guest, the world around it and the machine do to it.
// Saved state that comes from the device must always be taken back, unchanged.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/contract/device_table.hpp"
#include "tests/fuzz/input_reader.hpp"
#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void save_and_restore(Component& component) {
  require(component.pause().has_value());
  const StateRecord record = component.save().value();
  require(component.restore(record).has_value());
  require(component.save().value() == record);
  require(component.resume().has_value());
}

/// Whatever the payload is: it is taken or refused, and the device can be used again after a reset.
void restore_anything(Component& component, fuzz::InputReader& input) {
  require(component.pause().has_value());
  StateRecord record = component.save().value();
  const size_t place = input.take<uint16_t>();
  if (place < record.payload.size()) {
    record.payload[place] = input.take<std::byte>();
  } else {
    record.payload.resize(place % (record.payload.size() + 1));
  }
  if (!component.restore(record)) {
    require(component.reset().has_value());
  }
  require(component.resume().has_value());
}

void step(Subject& subject, uint64_t window_bytes, fuzz::InputReader& input) {
  const unsigned action = input.take<uint8_t>();
  const unsigned width = 1U << (action >> 6);
  const MmioAccess access{
      .offset = input.take<uint16_t>() % (window_bytes - std::min<uint64_t>(width, window_bytes) + 1),
      .width_bytes = window_bytes < width ? 1 : width};
  Random random(action);
  switch (action % 16) {
    case 0:
      return save_and_restore(subject.component());
    case 1:
      return restore_anything(subject.component(), input);
    case 2:
      return require(subject.component().reset().has_value());
    case 3:
      return subject.drive(random);
    case 4:
      return subject.bench().stir(random);
    case 5:
    case 6:
    case 7:
      return static_cast<void>(subject.handler().read(access));
    default:
      return static_cast<void>(subject.handler().write(access, low_bytes(input.take<uint64_t>(), access.width_bytes)));
  }
}

}  // namespace
}  // namespace tandem::devices

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tandem::devices;
  static const std::vector<DeviceRow> table = [] {
    tandem::log::set_level(tandem::log::Level::kOff);
    return device_table();
  }();
  tandem::fuzz::InputReader input(bytes, size);
  const DeviceRow& row = table[input.take<uint8_t>() % table.size()];
  const auto subject = row.make();
  while (!input.is_empty()) {
    step(*subject, row.window_bytes, input);
  }
  return 0;
}
