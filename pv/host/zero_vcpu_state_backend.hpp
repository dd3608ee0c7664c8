// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pv/host/vcpu_state_backend.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"

namespace tandem::pv {

/// The back end of hosts that have no other: reports nothing, which is always right. Its region is memory that nobody
/// can write.
class ZeroVcpuStateBackend final : public VcpuStateBackend {
 public:
  /// @errors  Errc::kOutOfMemory.
  static Result<std::unique_ptr<VcpuStateBackend>> create();

  [[nodiscard]] std::string_view name() const override { return "zeros"; }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.reports_preemption = false, .reports_in_vmm_code = false, .needs_no_halt_polling = false};
  }
  [[nodiscard]] std::span<std::byte> region() override { return region_.bytes(); }
  Result<void> place_region(GuestAddr /*base*/) override { return {}; }
  Result<void> attach_thread(unsigned /*vcpu*/) override { return {}; }
  void detach_thread(unsigned /*vcpu*/) override {}
  void activate(unsigned /*vcpu*/) override {}
  void deactivate(unsigned /*vcpu*/) override {}

 private:
  explicit ZeroVcpuStateBackend(MappedRegion region) : region_(std::move(region)) {}
  MappedRegion region_;
};

}  // namespace tandem::pv
