// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/state_record.hpp"

namespace tandem {

/// Saved form of KVM's interrupt controller, version 1. What the ITS and the LPIs keep in guest RAM is not part of it.
struct KvmVgicStateV1 {
  static constexpr StateKind kKind{"kvm_vgic", 1};

  uint32_t gic_version = 0;
  uint32_t vcpu_count = 0;
  uint32_t interrupt_count = 0;
  bool has_its = false;
  // One entry each for a register: KVM's group of device attributes, its attribute there, and the value.
  std::vector<uint32_t> groups;
  std::vector<uint64_t> attrs;
  std::vector<uint64_t> values;

  template <typename A>
  void fields(A& archive) {
    archive(1, gic_version);
    archive(2, vcpu_count);
    archive(3, interrupt_count);
    archive(4, has_its);
    archive(5, groups);
    archive(6, attrs);
    archive(7, values);
  }
};

/// Values of registers, by KVM's group of device attributes and the attribute there.
using VgicRegisters = std::map<std::pair<uint32_t, uint64_t>, uint64_t>;

/// The registers in `state`.
/// @errors  Errc::kCorrupt: the lists do not fit together, or a register is there twice.
Result<VgicRegisters> take_registers(const KvmVgicStateV1& state);

}  // namespace tandem
