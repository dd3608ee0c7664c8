// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/vcpu/register_id.hpp"

namespace tandem {

/// The registers of one vCPU, as its host lists, reads and writes them.
class RegisterFile {
 public:
  virtual ~RegisterFile() = default;
  /// All registers that the vCPU has.
  [[nodiscard]] virtual Result<std::vector<RegisterId>> list() const = 0;
  /// @pre `out` has the register's size.
  [[nodiscard]] virtual Result<void> read(RegisterId id, std::span<std::byte> out) const = 0;
  /// @pre `value` has the register's size.
  [[nodiscard]] virtual Result<void> write(RegisterId id, std::span<const std::byte> value) = 0;
};

/// The values of a vCPU's registers, and the policy of taking them to a vCPU of another host.
///
/// A register that the host does not have is refused, unless its value is the one that it had at reset. What the host has
/// beyond the set keeps the value of a reset. The host may refuse values of ID registers and the like; all that it refuses
/// come in one error, with both values.
class RegisterSet {
 public:
  struct Register {
    std::vector<std::byte> value;
    bool is_reset_value = false;
    bool operator==(const Register&) const = default;
  };

  /// Reads all registers of `vcpu` but those that are not saved: see RegisterClass.
  static Result<RegisterSet> read_from(const RegisterFile& vcpu);

  /// Adds a register. @pre it is not there, and `reg.value` has its size.
  void add(RegisterId id, Register reg);
  /// Notes which values are those of `reset`, the registers of a vCPU that has not run.
  void note_reset_values(const RegisterSet& reset);

  [[nodiscard]] const std::map<RegisterId, Register>& registers() const { return registers_; }

  /// Writes all registers to `vcpu`, whose other registers stay as they are.
  /// @pre     `vcpu` has been reset.
  /// @errors  Errc::kUnsupported: names what the host lacks or refuses; the vCPU is then not to be run.
  [[nodiscard]] Result<void> write_to(RegisterFile& vcpu) const;

  bool operator==(const RegisterSet&) const = default;

 private:
  std::map<RegisterId, Register> registers_;
};

}  // namespace tandem
