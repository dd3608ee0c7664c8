// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/state_record.hpp"
#include "vmm/vcpu/register_set.hpp"

namespace tandem {

/// Saved form of a vCPU of KVM, version 1.
struct KvmVcpuStateV1 {
  static constexpr StateKind kKind{"kvm_vcpu", 1};

  std::vector<uint64_t> register_ids;     ///< KVM's numbers.
  std::vector<uint8_t> register_values;   ///< One after the other; a register's number has its size.
  std::vector<uint8_t> are_reset_values;  ///< For each register: 1 if it had its value of a reset, else 0.
  uint32_t mp_state = 0;                  ///< KVM_MP_STATE_*.
  bool serror_pending = false;
  bool serror_has_esr = false;
  uint64_t serror_esr = 0;

  template <typename A>
  void fields(A& archive) {
    archive(1, register_ids);
    archive(2, register_values);
    archive(3, are_reset_values);
    archive(4, mp_state);
    archive(5, serror_pending);
    archive(6, serror_has_esr);
    archive(7, serror_esr);
  }
};

/// Puts `set` into the three lists of `state`.
void put_registers(const RegisterSet& set, KvmVcpuStateV1& state);

/// The registers in `state`.
/// @errors  Errc::kCorrupt: the lists do not fit together, a register is not one of arm64 or is there twice.
Result<RegisterSet> take_registers(const KvmVcpuStateV1& state);

}  // namespace tandem
