// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "vmm/vcpu/register_set.hpp"

namespace tandem {

/// The registers of a vCPU of KVM, by KVM_{GET,SET}_ONE_REG. @thread as of the vCPU.
class KvmRegisters final : public RegisterFile {
 public:
  /// The number of a 64-bit register at `offset_bytes` in struct kvm_regs.
  static constexpr RegisterId core(size_t offset_bytes) {
    return register_id::kArm64 | register_id::kSizeU64 | (uint64_t{register_id::kCore} << register_id::kGroupShift) |
           (offset_bytes / sizeof(uint32_t));
  }

  /// @pre `vcpu_fd` outlives this.
  explicit KvmRegisters(int vcpu_fd) : vcpu_fd_(vcpu_fd) {}

  [[nodiscard]] Result<std::vector<RegisterId>> list() const override;
  [[nodiscard]] Result<void> read(RegisterId id, std::span<std::byte> out) const override;
  [[nodiscard]] Result<void> write(RegisterId id, std::span<const std::byte> value) override;

  [[nodiscard]] Result<uint64_t> read_u64(RegisterId id) const;
  [[nodiscard]] Result<void> write_u64(RegisterId id, uint64_t value) const;

 private:
  int vcpu_fd_;
};

}  // namespace tandem
