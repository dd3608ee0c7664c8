// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "pv/host/kernel_records.hpp"
#include "vmm/kvm/kvm_vcpu.hpp"

namespace tandem {

/// The records of PV vCPU state as attributes of KVM's vCPUs.
class KvmRecords final : public pv::KernelRecords {
 public:
  /// @pre  the vCPUs outlive this.
  explicit KvmRecords(const std::vector<std::unique_ptr<KvmVcpu>>& vcpus) : vcpus_(vcpus) {}

  [[nodiscard]] bool can_be_kept() const override;
  Result<void> place(GuestAddr base) override;
  Result<void> keep(unsigned vcpu, bool kept) override;

 private:
  const std::vector<std::unique_ptr<KvmVcpu>>& vcpus_;
};

}  // namespace tandem
