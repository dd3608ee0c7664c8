// SPDX-License-Identifier: Apache-2.0
// One device of the contract suite's table, and a sequence of what a guest, the world around it and the machine do to it.
// Saved state that comes from the device must always be taken back, unchanged.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tests/contract/device_table.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {
namespace {

/// The fuzzer's bytes, as numbers; zeros when they are used up.
class Script {
 public:
  explicit Script(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }
  uint64_t take(unsigned byte_count) {
    uint64_t value = 0;
    for (unsigned index = 0; index < byte_count && !bytes_.empty(); ++index) {
      value = value << 8 | bytes_.front();
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
};

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
void restore_anything(Component& component, Script& script) {
  require(component.pause().has_value());
  StateRecord record = component.save().value();
  const size_t place = script.take(2);
  if (place < record.payload.size()) {
    record.payload[place] = static_cast<std::byte>(script.take(1));
  } else {
    record.payload.resize(place % (record.payload.size() + 1));
  }
  if (!component.restore(record)) {
    require(component.reset().has_value());
  }
  require(component.resume().has_value());
}

void step(Subject& subject, uint64_t window_bytes, Script& script) {
  const uint64_t action = script.take(1);
  const unsigned width = 1U << (action >> 6);
  const MmioAccess access{.offset = script.take(2) % (window_bytes - std::min<uint64_t>(width, window_bytes) + 1),
                          .width_bytes = window_bytes < width ? 1 : width};
  Random random(action);
  switch (action % 16) {
    case 0:
      return save_and_restore(subject.component());
    case 1:
      return restore_anything(subject.component(), script);
    case 2:
      return require(subject.component().reset().has_value());
    case 3:
    case 4:
      return subject.bench().stir(random);
    case 5:
    case 6:
    case 7:
      return static_cast<void>(subject.handler().read(access));
    default:
      return static_cast<void>(subject.handler().write(access, low_bytes(script.take(width), access.width_bytes)));
  }
}

}  // namespace
}  // namespace tandem::devices

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using namespace tandem::devices;
  static const std::vector<DeviceRow> table = device_table();
  Script script({input, size});
  const DeviceRow& row = table[script.take(1) % table.size()];
  const auto subject = row.make();
  while (!script.is_empty()) {
    step(*subject, row.window_bytes, script);
  }
  return 0;
}
