// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pv/host/kernel_records.hpp"
#include "pv/host/vcpu_state_backend.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"

namespace tandem::pv {

/// The back end for kernels with the patches of kernel-patches/pv-vcpu-state: KVM writes the records when it switches a
/// vCPU out and in. It needs no privilege, nothing of a thread, and the region is memory as any.
class KernelVcpuState final : public VcpuStateBackend {
 public:
  /// @pre     `records` outlives the back end.
  /// @errors  Errc::kUnsupported: this kernel keeps none.
  static Result<std::unique_ptr<VcpuStateBackend>> create(KernelRecords& records);

  [[nodiscard]] std::string_view name() const override { return "kernel"; }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.reports_preemption = true, .reports_in_vmm_code = false, .needs_no_halt_polling = false};
  }
  [[nodiscard]] std::span<std::byte> region() override { return region_.bytes(); }
  Result<void> place_region(GuestAddr base) override { return records_.place(base); }
  Result<void> attach_thread(unsigned /*vcpu*/) override { return {}; }
  void detach_thread(unsigned /*vcpu*/) override {}
  void activate(unsigned vcpu) override;
  void deactivate(unsigned vcpu) override;

 private:
  KernelVcpuState(KernelRecords& records, MappedRegion region) : records_(records), region_(std::move(region)) {}

  KernelRecords& records_;
  MappedRegion region_;
};

}  // namespace tandem::pv
