// SPDX-License-Identifier: Apache-2.0
#include "vmm/kvm/vgic_state.hpp"

namespace tandem {

Result<VgicRegisters> take_registers(const KvmVgicStateV1& state) {
  if (state.groups.size() != state.attrs.size() || state.groups.size() != state.values.size()) {
    return fail(Errc::kCorrupt, "the lists of the vGIC's registers have {}, {} and {} entries", state.groups.size(),
                state.attrs.size(), state.values.size());
  }
  VgicRegisters registers;
  for (size_t index = 0; index < state.groups.size(); ++index) {
    if (!registers.emplace(std::pair(state.groups[index], state.attrs[index]), state.values[index]).second) {
      return fail(Errc::kCorrupt, "group {} register {:#x} is there twice", state.groups[index], state.attrs[index]);
    }
  }
  return registers;
}

}  // namespace tandem
