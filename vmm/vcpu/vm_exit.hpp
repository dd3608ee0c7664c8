// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "devices/bus/hypercall_handler.hpp"
#include "vmm/lib/checked_range/checked_range.hpp"

namespace tandem {

/// The guest read from an address with no memory behind it; the vCPU waits for `Vcpu::complete_mmio_read`.
struct MmioReadExit {
  GuestAddr addr;
  unsigned width_bytes;
};

struct MmioWriteExit {
  GuestAddr addr;
  unsigned width_bytes;
  uint64_t value;
};

/// The guest accessed an address with no memory behind it by an instruction whose syndrome does not say what it does
/// (LDP/STP, vector, write-back, atomics).
struct UndecodedAccessExit {
  GuestAddr addr;
};

/// The guest made a call that KVM leaves to us; the vCPU waits for `Vcpu::complete_hypercall`.
struct HypercallExit {
  devices::Hypercall::Conduit conduit;
  uint32_t function;
  std::array<uint64_t, devices::kHypercallArguments> arguments;
};

/// The guest called PSCI SYSTEM_OFF.
struct SystemOffExit {};

/// The guest called PSCI SYSTEM_RESET, or SYSTEM_RESET2 with its two arguments.
struct SystemResetExit {
  bool is_reset2;
  uint64_t reset_type;
  uint64_t cookie;
};

/// `Vcpu::kick` or a signal ended the run.
struct InterruptedExit {};

/// KVM cannot run this vCPU any further.
struct FailureExit {
  std::string reason;
};

/// Why the guest stopped running.
using VmExit = std::variant<MmioReadExit, MmioWriteExit, UndecodedAccessExit, HypercallExit, SystemOffExit,
                            SystemResetExit, InterruptedExit, FailureExit>;

}  // namespace tandem
