// SPDX-License-Identifier: Apache-2.0
#include "pv/host/vcpu_state.hpp"

#include <cstring>

#include "pv/host/vcpu_state_state.hpp"

namespace tandem::pv {
namespace {

constexpr uint64_t kSuccess = PV_VCPU_STATE_SUCCESS;
constexpr auto kNotSupported = static_cast<uint64_t>(int64_t{PV_VCPU_STATE_NOT_SUPPORTED});
static_assert(kNotSupported == devices::kHypercallNotSupported);

}  // namespace

VcpuState::VcpuState(VcpuStateBackend& backend, GuestRange region, unsigned vcpu_count)
    : backend_(backend), region_(region), active_(vcpu_count) {
  TANDEM_ASSERT(region.size() == kVcpuStateRegionBytes && vcpu_count <= kMaxVcpuStateRecords,
                "the board has room for the record of every vCPU");
}

uint64_t VcpuState::call(const devices::Hypercall& hypercall) {
  switch (hypercall.function) {
    case PV_VCPU_STATE_FEATURES:
      return features(static_cast<uint32_t>(hypercall.arguments[0]));
    case PV_VCPU_STATE_INIT:
      return init(hypercall.vcpu);
    case PV_VCPU_STATE_RELEASE:
      return release(hypercall.vcpu);
    default:
      return kNotSupported;
  }
}

uint64_t VcpuState::features(uint32_t function) { return kFunctions.contains(function) ? kSuccess : kNotSupported; }

uint64_t VcpuState::init(unsigned vcpu) {
  if (!active_[vcpu]) {
    active_[vcpu] = true;
    backend_.activate(vcpu);
  }
  return region_.base().value() + uint64_t{vcpu} * PV_VCPU_STATE_RECORD_BYTES;
}

uint64_t VcpuState::release(unsigned vcpu) {
  if (active_[vcpu]) {
    active_[vcpu] = false;
    backend_.deactivate(vcpu);
  }
  return kSuccess;
}

void VcpuState::release_all() {
  for (unsigned vcpu = 0; vcpu < active_.size(); ++vcpu) {
    release(vcpu);
  }
}

devices::MmioRead VcpuState::read(devices::MmioAccess access) {
  uint64_t value = 0;
  std::memcpy(&value, backend_.region().subspan(access.offset, access.width_bytes).data(), access.width_bytes);
  return value;
}

devices::MmioWrite VcpuState::write(devices::MmioAccess /*access*/, uint64_t /*value*/) {
  return std::unexpected(devices::BadAccess::kReadOnly);
}

Result<void> VcpuState::reset() {
  release_all();
  return {};
}

Result<StateRecord> VcpuState::save() {
  PvVcpuStateV1 saved;
  for (uint32_t vcpu = 0; vcpu < active_.size(); ++vcpu) {
    if (active_[vcpu]) {
      saved.active.push_back(vcpu);
    }
  }
  return save_state(std::move(saved));
}

Result<void> VcpuState::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<PvVcpuStateV1>(record));
  const auto& [active] = saved;
  uint64_t least = 0;
  for (const uint32_t vcpu : active) {
    if (vcpu < least || vcpu >= active_.size()) {
      return fail(Errc::kCorrupt, "{}: vCPU {} is active, of {} vCPUs in ascending order", PvVcpuStateV1::kKind.kind,
                  vcpu, active_.size());
    }
    least = uint64_t{vcpu} + 1;
  }
  release_all();
  for (const uint32_t vcpu : active) {
    init(vcpu);
  }
  return {};
}

devices::FdtNode VcpuState::describe() const {
  devices::FdtNode node(devices::fdt_unit_name(PV_VCPU_STATE_DT_NODE, region_.base()));
  node.add_string("compatible", PV_VCPU_STATE_DT_COMPATIBLE).add_reg(region_);
  node.add_u32(PV_VCPU_STATE_DT_STRIDE, PV_VCPU_STATE_RECORD_BYTES);
  node.add_u32(PV_VCPU_STATE_DT_FUNCTION_BASE, PV_VCPU_STATE_FEATURES);
  return node;
}

}  // namespace tandem::pv
