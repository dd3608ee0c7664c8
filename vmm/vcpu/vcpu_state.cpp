// SPDX-License-Identifier: Apache-2.0
#include "vmm/vcpu/vcpu_state.hpp"

#include <cstring>
#include <span>

namespace tandem {
namespace {

/// The largest that KVM has: an SVE vector of 2048 bits.
constexpr size_t kMaxRegisterBytes = 256;
constexpr RegisterId kArchitectureMask = uint64_t{0xff} << 56;

}  // namespace

void put_registers(const RegisterSet& set, KvmVcpuStateV1& state) {
  for (const auto& [id, reg] : set.registers()) {
    state.register_ids.push_back(id);
    state.are_reset_values.push_back(reg.is_reset_value ? 1 : 0);
    for (const std::byte byte : reg.value) {
      state.register_values.push_back(static_cast<uint8_t>(byte));
    }
  }
}

Result<RegisterSet> take_registers(const KvmVcpuStateV1& state) {
  if (state.are_reset_values.size() != state.register_ids.size()) {
    return fail(Errc::kCorrupt, "{} registers, of which {} have a flag", state.register_ids.size(),
                state.are_reset_values.size());
  }
  RegisterSet set;
  auto rest = std::as_bytes(std::span(state.register_values));
  for (size_t index = 0; index < state.register_ids.size(); ++index) {
    const RegisterId id = state.register_ids[index];
    const size_t size_bytes = size_bytes_of(id);
    if ((id & kArchitectureMask) != register_id::kArm64 || size_bytes > kMaxRegisterBytes ||
        set.registers().contains(id) || !is_saved(id)) {
      return fail(Errc::kCorrupt, "{:#x} is no register, or is there twice", id);
    }
    if (size_bytes > rest.size() || state.are_reset_values[index] > 1) {
      return fail(Errc::kCorrupt, "{} has no value", name_of(id));
    }
    const auto value = rest.first(size_bytes);
    set.add(id, {.value = {value.begin(), value.end()}, .is_reset_value = state.are_reset_values[index] == 1});
    rest = rest.subspan(size_bytes);
  }
  if (!rest.empty()) {
    return fail(Errc::kCorrupt, "{} bytes behind the last register", rest.size());
  }
  return set;
}

}  // namespace tandem
