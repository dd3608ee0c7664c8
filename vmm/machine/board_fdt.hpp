// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "devices/bus/fdt_node.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"

/// The device-tree nodes that belong to no device: processors, interrupt controller, timer, memory.
namespace tandem::board {

inline constexpr uint32_t kGicPhandle = 1;
inline constexpr uint32_t kItsPhandle = 2;
inline constexpr uint32_t kClockPhandle = 3;
inline constexpr uint32_t kGpioPhandle = 4;

/// What those nodes depend on.
struct FdtInputs {
  std::vector<uint64_t> mpidrs;  ///< Affinity of each vCPU, as KVM reports it.
  bool gic_v3;
  bool its;
  bool pmu;
  GuestRange ram;
};

/// The root node with all of them; devices and /chosen are added to it.
/// @spec  Devicetree Specification v0.4; Linux bindings arm/cpus, arm,gic-v3, arm,gic, arm,arch_timer, psci, arm,pmu
[[nodiscard]] devices::FdtNode root_node(const FdtInputs& inputs);

}  // namespace tandem::board
