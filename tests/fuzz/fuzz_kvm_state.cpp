// SPDX-License-Identifier: Apache-2.0
// Records of KVM's vCPUs, interrupt controller and counter, of any content, are read or refused; what is accepted is written
// back the same, and registers reach a vCPU of another host or are refused.
#include <cstdlib>
#include <string>

#include "tests/fakes/fake_register_file.hpp"
#include "tests/fuzz/input_reader.hpp"
#include "vmm/kvm/vgic_state.hpp"
#include "vmm/kvm/vm_counter_state.hpp"
#include "vmm/vcpu/vcpu_state.hpp"

namespace tandem {
namespace {

template <typename State>
std::optional<State> load(std::span<const std::byte> payload) {
  auto state = load_state<State>({.kind = std::string(State::kKind.kind),
                                  .version = State::kKind.version,
                                  .payload = {payload.begin(), payload.end()}});
  if (!state) {
    return std::nullopt;
  }
  const StateRecord saved = save_state(*state);
  auto again = load_state<State>(saved);
  if (!again || save_state(*again) != saved) {
    std::abort();
  }
  return *std::move(state);
}

void load_vcpu(std::span<const std::byte> payload) {
  const auto state = load<KvmVcpuStateV1>(payload);
  const auto registers = state ? take_registers(*state) : Result<RegisterSet>(fail(Errc::kCorrupt, "no record"));
  if (!registers) {
    return;
  }
  KvmVcpuStateV1 put;
  put_registers(*registers, put);
  const auto taken = take_registers(put);
  if (!taken || *taken != *registers) {
    std::abort();
  }
  // A host that has every other register, and one of those with a value that cannot be changed.
  FakeRegisterFile host;
  bool has = true;
  for (const auto& [id, reg] : registers->registers()) {
    if (has) {
      host.set(id, 0);
    }
    has = !has;
  }
  if (!host.values.empty()) {
    host.fixed.push_back(host.values.begin()->first);
  }
  if (const auto written = registers->write_to(host); !written && written.error().message().empty()) {
    std::abort();
  }
}

void load_vgic(std::span<const std::byte> payload) {
  const auto state = load<KvmVgicStateV1>(payload);
  const auto registers = state ? take_registers(*state) : Result<VgicRegisters>(fail(Errc::kCorrupt, "no record"));
  if (registers && registers->size() != state->groups.size()) {
    std::abort();
  }
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  tandem::fuzz::InputReader input(bytes, size);
  switch (input.take<uint8_t>() % 3) {
    case 0:
      tandem::load_vcpu(input.rest());
      break;
    case 1:
      tandem::load_vgic(input.rest());
      break;
    default:
      tandem::load<tandem::VmCounterStateV1>(input.rest());
      break;
  }
  return 0;
}
