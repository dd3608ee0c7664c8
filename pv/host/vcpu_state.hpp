// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "devices/bus/fdt_node.hpp"
#include "devices/bus/hypercall_bus.hpp"
#include "devices/bus/mmio_handler.hpp"
#include "pv/host/vcpu_state_backend.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::pv {

/// PV vCPU state towards the guest: its three calls, which vCPUs' records are active, the device-tree node. What the
/// records hold is the back end's. Spec: docs/pv-vcpu-state.md.
///
/// The guest reads the region as memory. Only stores to it come here, and are refused.
class VcpuState final : public devices::HypercallHandler, public devices::MmioHandler, public Component {
 public:
  static constexpr devices::FunctionRange kFunctions{.first = PV_VCPU_STATE_FEATURES, .count = PV_VCPU_STATE_CALLS};
  static constexpr uint64_t kWindowBytes = kVcpuStateRegionBytes;

  /// @param region  where the guest has the back end's region.
  /// @pre           `backend` outlives this, and has no active vCPU; region.size() is kVcpuStateRegionBytes;
  ///                vcpu_count <= kMaxVcpuStateRecords.
  VcpuState(VcpuStateBackend& backend, GuestRange region, unsigned vcpu_count);

  uint64_t call(const devices::Hypercall& hypercall) override;

  devices::MmioRead read(devices::MmioAccess access) override;
  devices::MmioWrite write(devices::MmioAccess access, uint64_t value) override;

  [[nodiscard]] std::string_view name() const override { return "pv-vcpu-state"; }
  Result<void> reset() override;
  Result<void> pause() override { return {}; }  // a parked vCPU's record is 0 by itself
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

  [[nodiscard]] bool is_active(unsigned vcpu) const { return active_[vcpu]; }

  /// The node "pv-vcpu-state@…".
  [[nodiscard]] devices::FdtNode describe() const;

 private:
  [[nodiscard]] static uint64_t features(uint32_t function);
  uint64_t init(unsigned vcpu);
  uint64_t release(unsigned vcpu);
  void release_all();

  VcpuStateBackend& backend_;
  const GuestRange region_;
  std::vector<bool> active_;  // by vCPU
};

}  // namespace tandem::pv
