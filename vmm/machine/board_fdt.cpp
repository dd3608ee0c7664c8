// SPDX-License-Identifier: Apache-2.0
#include "vmm/machine/board_fdt.hpp"

#include <algorithm>

#include "vmm/machine/board_layout.hpp"

namespace tandem::board {
namespace {

using devices::FdtNode;
using devices::IrqTrigger;

constexpr uint32_t kPpi = 1;
constexpr uint32_t kApbClockHz = 24'000'000;

/// Third cell of a PPI's `interrupts`: its trigger, and on a GICv2 the CPUs it is wired to. (Linux binding "arm,gic")
uint32_t ppi_flags(const FdtInputs& inputs, IrqTrigger trigger) {
  const uint32_t cpu_mask = inputs.gic_v3 ? 0 : (1U << std::min<size_t>(inputs.mpidrs.size(), 8)) - 1;
  return (cpu_mask << 8) | static_cast<uint32_t>(trigger);
}

FdtNode cpus_node(const FdtInputs& inputs) {
  FdtNode cpus("cpus");
  cpus.add_u32("#address-cells", 2).add_u32("#size-cells", 0);
  for (const uint64_t mpidr : inputs.mpidrs) {
    FdtNode cpu(devices::fdt_unit_name("cpu", GuestAddr(mpidr)));
    cpu.add_string("device_type", "cpu").add_string("compatible", "arm,armv8").add_string("enable-method", "psci");
    cpu.add_u64("reg", mpidr);
    cpus.add_child(std::move(cpu));
  }
  return cpus;
}

FdtNode psci_node() {
  FdtNode psci("psci");
  psci.add_strings("compatible", {"arm,psci-1.0", "arm,psci-0.2"}).add_string("method", "hvc");
  return psci;
}

FdtNode timer_node(const FdtInputs& inputs) {
  const uint32_t flags = ppi_flags(inputs, IrqTrigger::kLevelLow);
  std::vector<uint32_t> cells;
  for (const Intid intid : {kSecureTimerIrq, kPhysicalTimerIrq, kVirtualTimerIrq, kHypervisorTimerIrq}) {
    cells.insert(cells.end(), {kPpi, intid.value() - Intid::kFirstPpi, flags});
  }
  FdtNode timer("timer");
  timer.add_string("compatible", "arm,armv8-timer").add_cells("interrupts", cells).add_empty("always-on");
  return timer;
}

FdtNode pmu_node(const FdtInputs& inputs) {
  FdtNode pmu("pmu");
  pmu.add_string("compatible", "arm,armv8-pmuv3");
  pmu.add_cells("interrupts", {kPpi, kPmuIrq.value() - Intid::kFirstPpi, ppi_flags(inputs, IrqTrigger::kLevelHigh)});
  return pmu;
}

/// `reg` of two frames under #address-cells = #size-cells = 2.
void add_two_regs(FdtNode& node, GuestRange first, GuestRange second) {
  std::vector<uint32_t> cells;
  for (const GuestRange& range : {first, second}) {
    for (const uint64_t value : {range.base().value(), range.size()}) {
      cells.insert(cells.end(), {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value)});
    }
  }
  node.add_cells("reg", cells);
}

FdtNode gic_node(const FdtInputs& inputs) {
  FdtNode gic(devices::fdt_unit_name("interrupt-controller", kGicd.base()));
  gic.add_string("compatible", inputs.gic_v3 ? "arm,gic-v3" : "arm,cortex-a15-gic");
  gic.add_empty("interrupt-controller").add_u32("#interrupt-cells", 3).add_u32("phandle", kGicPhandle);
  add_two_regs(gic, kGicd, inputs.gic_v3 ? gicr(static_cast<unsigned>(inputs.mpidrs.size())) : kGicc);
  gic.add_u32("#address-cells", 2).add_u32("#size-cells", 2).add_empty("ranges");
  if (inputs.its) {
    FdtNode its(devices::fdt_unit_name("msi-controller", kGits.base()));
    its.add_string("compatible", "arm,gic-v3-its").add_empty("msi-controller").add_u32("#msi-cells", 1);
    its.add_reg(kGits).add_u32("phandle", kItsPhandle);
    gic.add_child(std::move(its));
  }
  return gic;
}

FdtNode clock_node() {
  FdtNode clock("apb-pclk");
  clock.add_string("compatible", "fixed-clock").add_u32("#clock-cells", 0).add_u32("clock-frequency", kApbClockHz);
  clock.add_string("clock-output-names", "clk24mhz").add_u32("phandle", kClockPhandle);
  return clock;
}

FdtNode memory_node(const FdtInputs& inputs) {
  FdtNode memory(devices::fdt_unit_name("memory", inputs.ram.base()));
  memory.add_string("device_type", "memory").add_reg(inputs.ram);
  return memory;
}

}  // namespace

FdtNode root_node(const FdtInputs& inputs) {
  FdtNode root("");
  root.add_string("compatible", "linux,dummy-virt").add_string("model", "tandem");
  root.add_u32("#address-cells", 2).add_u32("#size-cells", 2).add_u32("interrupt-parent", kGicPhandle);
  root.add_empty("dma-coherent");
  root.add_child(memory_node(inputs)).add_child(cpus_node(inputs)).add_child(psci_node());
  root.add_child(gic_node(inputs)).add_child(timer_node(inputs));
  if (inputs.pmu) {
    root.add_child(pmu_node(inputs));
  }
  root.add_child(clock_node());
  return root;
}

}  // namespace tandem::board
