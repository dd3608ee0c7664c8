// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "pv/host/vcpu_state_backend.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::pv {

/// The back end for kernels as they are, 6.4 or later with type information: a BPF program on the scheduler's switches
/// writes the records, in a map whose pages are the region. Decision 3 in docs/decisions says why it is as it is.
///
/// Nothing of it has a name in the kernel: all is held by close-on-exec descriptors and mappings of this process, and gone
/// with them. It needs CAP_BPF and CAP_PERFMON while it is created, and none after.
///
/// A record is written by the program at the switches of its vCPU's thread, and by `deactivate`. How the two keep apart is
/// in pv/bpf/vcpu_activity.h.
class BpfVcpuState final : public VcpuStateBackend {
 public:
  /// Loads the program and attaches it.
  /// @errors  Errc::kUnsupported, Errc::kPermission: this host does not let us; the message is the reason, in one line.
  static Result<std::unique_ptr<BpfVcpuState>> create();

  [[nodiscard]] std::string_view name() const override { return "bpf"; }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.reports_preemption = true, .reports_in_vmm_code = true, .needs_no_halt_polling = true};
  }
  /// Mapped read-only: the guest's slot is too.
  [[nodiscard]] std::span<std::byte> region() override { return region_.bytes(); }
  Result<void> place_region(GuestAddr /*base*/) override { return {}; }

  Result<void> attach_thread(unsigned vcpu) override;
  void detach_thread(unsigned vcpu) override;
  void activate(unsigned vcpu) override;
  void deactivate(unsigned vcpu) override;

 private:
  BpfVcpuState(UniqueFd link, UniqueFd tie_program, MappedRegion region, MappedRegion records, MappedRegion activity);
  [[nodiscard]] std::atomic_ref<uint64_t> word(unsigned vcpu) const;

  const UniqueFd link_;  // holds the program, and it the maps
  const UniqueFd tie_program_;
  const MappedRegion region_;
  const MappedRegion records_;  // the same pages, writable
  const MappedRegion activity_;
};

}  // namespace tandem::pv
