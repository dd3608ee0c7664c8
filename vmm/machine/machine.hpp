// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vmm/kvm/kvm_vgic.hpp"
#include "vmm/lib/event_loop/event_loop.hpp"
#include "vmm/lib/guest_memory/guest_memory.hpp"
#include "vmm/lib/guest_memory/guest_ram.hpp"
#include "vmm/machine/device_set.hpp"
#include "vmm/machine/guest_loader.hpp"
#include "vmm/machine/machine_spec.hpp"
#include "vmm/machine/pv_services.hpp"
#include "vmm/vcpu/vcpu_thread.hpp"

namespace tandem {

/// How a machine came to its end.
struct MachineEnd {
  enum class Kind : uint8_t {
    kPoweredOff,  ///< By the guest.
    kCrashed,     ///< The guest, or KVM under it.
    kStopped,     ///< By a signal or the user.
    kFailed,      ///< The host failed.
  };
  Kind kind;
  std::string reason;  ///< One line; empty for kPoweredOff.
};

/// Owns everything of one VM, wires it by the spec, and drives its life in a fixed order.
///
/// Threads: the one that calls `run` controls the machine; "io" runs the devices' asynchronous work; one thread a vCPU.
class Machine final : public MachineEvents {
 public:
  /// Builds the machine, up to but not including the first guest instruction. SIGTERM, SIGINT and SIGHUP, unless
  /// ignored, are blocked in the calling thread from then on: `run` handles them.
  /// @errors  whatever of the host is missing or refuses; nothing is left behind.
  static Result<std::unique_ptr<Machine>> create(MachineSpec spec);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() override;

  /// The device tree as the guest would get it at the next reset.
  [[nodiscard]] Result<std::vector<std::byte>> device_tree() const;

  /// Runs the guest until it ends, or a signal or the user ends it. Called once.
  MachineEnd run();

 private:
  Machine(MachineSpec spec, GuestLoader loader, Kvm kvm)
      : spec_(std::move(spec)), loader_(std::move(loader)), kvm_(std::move(kvm)) {}
  Result<void> build();
  Result<void> create_memory();
  Result<void> create_vcpus();
  Result<void> create_devices();
  Result<void> create_pv_services();
  [[nodiscard]] Result<GicVersion> choose_gic() const;
  [[nodiscard]] Result<VcpuFeatures> choose_features() const;
  [[nodiscard]] devices::FdtNode hardware_tree() const;
  Result<void> watch_signals();

  Result<void> load_guest();
  Result<void> start();
  Result<void> reset();
  void end(MachineEnd::Kind kind, std::string reason);

  void on_system_off() override;
  void on_system_reset(const SystemResetExit& reset) override;
  void on_crash(std::string reason) override;
  void on_quit() override;

  const MachineSpec spec_;
  const GuestLoader loader_;
  const Kvm kvm_;

  std::unique_ptr<EventLoop> control_loop_;  // of the thread in `run`
  std::unique_ptr<EventLoop> io_loop_;       // of the "io" thread
  UniqueFd signals_;
  EventLoop::Watch signals_watch_;

  std::optional<GuestRam> ram_;
  std::optional<GuestMemory> memory_;
  std::unique_ptr<KvmVm> vm_;
  std::unique_ptr<KvmVgic> vgic_;
  VcpuFeatures features_;
  std::vector<std::unique_ptr<KvmVcpu>> vcpus_;
  std::unique_ptr<DeviceSet> devices_;
  devices::HypercallBus hypercalls_;
  std::unique_ptr<PvServices> pv_;

  std::unique_ptr<ExitDispatcher> dispatcher_;
  std::vector<std::unique_ptr<VcpuThread>> vcpu_threads_;
  std::thread io_thread_;

  std::atomic<uint64_t> reset_count_{0};
  std::optional<MachineEnd> end_;  // set once, by the control thread
};

}  // namespace tandem
