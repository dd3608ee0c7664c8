// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "devices/bus/hypercall_bus.hpp"
#include "devices/bus/mmio_bus.hpp"
#include "vmm/lib/log/log.hpp"
#include "vmm/vcpu/vcpu.hpp"

namespace tandem {

/// What vCPUs and devices may ask of their machine. A vCPU that asks parks itself and is not entered again before the machine
/// resumes it. @thread any.
class MachineEvents {
 public:
  virtual ~MachineEvents() = default;
  virtual void on_system_off() = 0;
  virtual void on_system_reset(const SystemResetExit& reset) = 0;
  /// The guest, or KVM beneath it, is beyond help. @param reason  one line.
  virtual void on_crash(std::string reason) = 0;
  /// The user asked at the console for the end.
  virtual void on_quit() = 0;
};

/// Whether a vCPU goes on after an exit.
enum class AfterExit : uint8_t { kContinue, kPark };

/// Answers the exits of all vCPUs: MMIO and calls through their buses, the rest through the machine. Holds the policy for accesses that
/// cannot be decoded: the guest takes an external abort, whatever it accessed. @thread any.
class ExitDispatcher {
 public:
  /// @pre all outlive the dispatcher.
  ExitDispatcher(devices::MmioBus& bus, devices::HypercallBus& hypercalls, MachineEvents& events)
      : bus_(bus), hypercalls_(hypercalls), events_(events) {}

  AfterExit handle(Vcpu& vcpu, const VmExit& exit);

 private:
  AfterExit on(Vcpu& vcpu, const MmioReadExit& exit);
  AfterExit on(Vcpu& vcpu, const MmioWriteExit& exit);
  AfterExit on(Vcpu& vcpu, const UndecodedAccessExit& exit);
  AfterExit on(Vcpu& vcpu, const HypercallExit& exit);
  AfterExit on(Vcpu& vcpu, const SystemOffExit& exit);
  AfterExit on(Vcpu& vcpu, const SystemResetExit& exit);
  AfterExit on(Vcpu& vcpu, const InterruptedExit& exit);
  AfterExit on(Vcpu& vcpu, const FailureExit& exit);

  devices::MmioBus& bus_;
  devices::HypercallBus& hypercalls_;
  MachineEvents& events_;
  log::RateLimit undecoded_;
};

}  // namespace tandem
