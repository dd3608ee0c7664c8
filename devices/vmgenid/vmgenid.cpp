// SPDX-License-Identifier: Apache-2.0
#include "devices/vmgenid/vmgenid.hpp"

#include <algorithm>
#include <cstring>

#include "devices/vmgenid/vmgenid_state.hpp"
#include "vmm/lib/cache_clean/cache_clean.hpp"

namespace tandem::devices {

Result<std::unique_ptr<VmGenId>> VmGenId::create(std::string name, IrqLine irq, EntropySource& entropy) {
  MappedRegion memory = TANDEM_TRY(
      MappedRegion::map_aligned(kWindowBytes, kWindowBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS));
  std::unique_ptr<VmGenId> made(new VmGenId(std::move(name), irq, entropy, std::move(memory)));
  TANDEM_TRY(made->draw());
  return made;
}

Result<void> VmGenId::draw() {
  Id id{};
  TANDEM_TRY(with_context(entropy_.fill(std::as_writable_bytes(std::span(id))), "generation id"));
  show(id);
  return {};
}

/// Linux maps the id as Device memory, so its reads pass by the caches that our writes go to.
void VmGenId::show(const Id& id) {
  const std::span<std::byte> place = memory().first(kIdBytes);
  std::ranges::copy(std::as_bytes(std::span(id)), place.begin());
  clean_to_coherency(place);
}

/// The wire goes up and down in this very call. A pulse would be given by a worker of the host's kernel, at a time when the
/// guest may have drawn numbers already that its copies draw too.
Result<void> VmGenId::renew() {
  TANDEM_TRY(draw());
  irq_.set_level(true);
  irq_.set_level(false);
  return {};
}

MmioRead VmGenId::read(MmioAccess access) {
  uint64_t value = 0;
  std::memcpy(&value, memory().subspan(access.offset, access.width_bytes).data(), access.width_bytes);
  return value;
}

MmioWrite VmGenId::write(MmioAccess /*access*/, uint64_t /*value*/) { return std::unexpected(BadAccess::kReadOnly); }

Result<StateRecord> VmGenId::save() {
  VmGenIdStateV1 saved;
  auto& [id] = saved;
  std::ranges::copy(memory().first(kIdBytes), std::as_writable_bytes(std::span(id)).begin());
  return save_state(saved);
}

Result<void> VmGenId::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<VmGenIdStateV1>(record));
  const auto& [id] = saved;
  show(id);
  return {};
}

FdtNode VmGenId::describe(const FdtPlacement& placement) const {
  FdtNode node(fdt_unit_name("rng", placement.window.base()));
  node.add_string("compatible", "microsoft,vmgenid");
  node.add_reg(placement.window);
  add_spi(node, placement.intid, IrqTrigger::kEdgeRising);
  return node;
}

}  // namespace tandem::devices
