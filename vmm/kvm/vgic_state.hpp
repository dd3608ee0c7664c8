// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace tandem
