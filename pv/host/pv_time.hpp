// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/mapped_region/mapped_region.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/component.hpp"

namespace tandem::pv {

/// The memory in which KVM tells a guest of its stolen time; the calls are KVM's own. (Arm DEN 0057A, "Stolen time")
///
/// KVM adds to the time that it finds in the memory, from the guest's call on, which zeroes it. So the contents are
/// state, which is saved and restored; and a reset zeroes them, as the next guest will find them if it never calls.
class PvTime final : public Component {
 public:
  /// Size of the region [bytes]: a multiple of every page size of an arm64 host.
  static constexpr size_t kRegionBytes = 0x1'0000;
  /// Distance of the structures of neighbouring vCPUs, and their alignment. (Arm DEN 0057A, "PV_TIME_ST")
  static constexpr uint64_t kStride = 64;
  static constexpr unsigned kMaxVcpus = kRegionBytes / kStride;

  /// @errors  Errc::kOutOfMemory.
  static Result<PvTime> create();

  /// The memory that is to back the guest's region. It stays where it is.
  [[nodiscard]] std::span<std::byte> region() { return region_.bytes(); }

  [[nodiscard]] std::string_view name() const override { return "pv-time"; }
  Result<void> reset() override;
  Result<void> pause() override { return {}; }  // KVM writes only while a vCPU runs
  Result<void> resume() override { return {}; }
  Result<StateRecord> save() override;
  Result<void> restore(const StateRecord& record) override;

 private:
  explicit PvTime(MappedRegion region) : region_(std::move(region)) {}
  MappedRegion region_;
};

}  // namespace tandem::pv
