// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "devices/bus/fdt_node.hpp"
#include "devices/bus/hypercall_bus.hpp"
#include "devices/bus/mmio_bus.hpp"
#include "pv/host/pv_time.hpp"
#include "pv/host/vcpu_state.hpp"
#include "pv/host/vcpu_state_backend.hpp"
#include "vmm/kvm/kvm_vcpu.hpp"
#include "vmm/kvm/kvm_vm.hpp"
#include "vmm/lib/state/saved_components.hpp"
#include "vmm/machine/kvm_records.hpp"
#include "vmm/machine/machine_spec.hpp"
#include "vmm/machine/machine_status.hpp"
#include "vmm/vcpu/vcpu_thread.hpp"

namespace tandem {

/// The paravirtual services of one machine: PV vCPU state and stolen time, each with its own memory slot.
class PvServices final : public VcpuThreadListener {
 public:
  /// What the services are built into.
  struct Host {
    KvmVm& vm;
    std::vector<std::unique_ptr<KvmVcpu>>& vcpus;
    devices::MmioBus& bus;
    devices::HypercallBus& hypercalls;
  };

  /// Sets up what the spec asks for and the host can do.
  /// @pre     no vCPU has run. Of `host`, the services outlive the two buses' last access; the vCPUs outlive the services.
  /// @errors  Errc::kUnsupported: the spec insists on what the host cannot do.
  static Result<std::unique_ptr<PvServices>> create(const MachineSpec& spec, const Host& host);
  PvServices(const PvServices&) = delete;
  PvServices& operator=(const PvServices&) = delete;
  ~PvServices() override = default;

  /// Adds the node of every service that is discovered by one to `root`.
  void describe(devices::FdtNode& root) const;
  /// What keeps the PV vCPU state, and why nothing better does; one line for the user. Empty if that is switched off.
  [[nodiscard]] const std::string& vcpu_state_summary() const { return vcpu_state_summary_; }
  /// The same in its parts.
  [[nodiscard]] const PvVcpuStateStatus& vcpu_state_status() const { return vcpu_state_status_; }
  /// Whether the guest can have PV vCPU state.
  [[nodiscard]] bool has_vcpu_state() const { return vcpu_state_.has_value(); }
  /// Whether the guest can have stolen time.
  [[nodiscard]] bool has_time() const { return time_.has_value(); }

  /// Component's calls, for every service. @pre every vCPU is parked.
  Result<void> pause();
  Result<void> resume();
  Result<void> reset();

  /// Adds the state of every service to `state`. @pre paused.
  Result<void> save(MachineState& state);
  /// Gives every service its state. @pre paused.
  Result<void> restore(SavedComponents& saved);

  Result<void> on_thread_start(unsigned vcpu) override;
  void on_thread_end(unsigned vcpu) override;

 private:
  PvServices() = default;
  Result<void> add_vcpu_state(VcpuStateChoice choice, const Host& host);
  Result<void> connect_vcpu_state(const Host& host);
  Result<void> add_time(const Host& host);
  /// Calls `visit` with each service, its mutex held.
  Result<void> for_each_component(const std::function<Result<void>(Component&)>& visit);

  std::optional<KvmRecords> records_;
  std::unique_ptr<pv::VcpuStateBackend> backend_;
  std::string vcpu_state_summary_;
  PvVcpuStateStatus vcpu_state_status_{.back_end = "off", .reason = {}};
  std::mutex vcpu_state_mutex_;  // guards *vcpu_state_; the buses take it
  std::optional<pv::VcpuState> vcpu_state_;
  std::optional<pv::PvTime> time_;
};

}  // namespace tandem
