// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv/host/vcpu_state_backend.hpp"

namespace tandem::pv {

/// A back end whose vCPUs are preempted when the test says so.
class FakeVcpuStateBackend final : public VcpuStateBackend {
 public:
  explicit FakeVcpuStateBackend(std::string name = "fake") : name_(std::move(name)) {}

  /// Preempts `vcpu`; shows in its record if it is active.
  void preempt(unsigned vcpu) {
    if (active.contains(vcpu)) {
      pv_vcpu_state_record record = this->record(vcpu);
      record.preempted = 1;
      ++record.preempt_count;
      std::memcpy(place(vcpu), &record, sizeof record);
    }
  }
  [[nodiscard]] pv_vcpu_state_record record(unsigned vcpu) {
    pv_vcpu_state_record record{};
    std::memcpy(&record, place(vcpu), sizeof record);
    return record;
  }
  [[nodiscard]] bool all_zero() const {
    return std::ranges::all_of(region_, [](std::byte byte) { return byte == std::byte{0}; });
  }

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] Capabilities capabilities() const override {
    return {.reports_preemption = true, .reports_in_vmm_code = true, .needs_no_halt_polling = false};
  }
  [[nodiscard]] std::span<std::byte> region() override { return region_; }
  Result<void> place_region(GuestAddr /*base*/) override { return {}; }
  Result<void> attach_thread(unsigned /*vcpu*/) override { return {}; }
  void detach_thread(unsigned /*vcpu*/) override {}
  void activate(unsigned vcpu) override {
    ++activations;
    active.insert(vcpu);
  }
  void deactivate(unsigned vcpu) override {
    active.erase(vcpu);
    std::memset(place(vcpu), 0, PV_VCPU_STATE_RECORD_BYTES);
  }

  std::set<unsigned> active;
  unsigned activations = 0;

 private:
  [[nodiscard]] std::byte* place(unsigned vcpu) { return &region_.at(size_t{vcpu} * PV_VCPU_STATE_RECORD_BYTES); }

  std::string name_;
  std::vector<std::byte> region_ = std::vector<std::byte>(kVcpuStateRegionBytes);
};

}  // namespace tandem::pv
