// SPDX-License-Identifier: Apache-2.0
#include "pv/host/pv_time.hpp"

#include <algorithm>

#include "pv/host/pv_time_state.hpp"

namespace tandem::pv {

Result<PvTime> PvTime::create() {
  return PvTime(TANDEM_TRY(MappedRegion::map(kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS)));
}

Result<void> PvTime::reset() {
  std::ranges::fill(region(), std::byte{0});
  return {};
}

Result<StateRecord> PvTime::save() {
  const auto bytes = region();
  PvTimeStateV1 saved;
  std::ranges::transform(bytes, std::back_inserter(saved.contents),
                         [](std::byte b) { return std::to_integer<uint8_t>(b); });
  return save_state(std::move(saved));
}

Result<void> PvTime::restore(const StateRecord& record) {
  const auto saved = TANDEM_TRY(load_state<PvTimeStateV1>(record));
  const auto& [contents] = saved;
  if (contents.size() != kRegionBytes) {
    return fail(Errc::kCorrupt, "{}: {} bytes instead of {}", PvTimeStateV1::kKind.kind, contents.size(), kRegionBytes);
  }
  std::ranges::transform(contents, region().begin(), [](uint8_t b) { return std::byte{b}; });
  return {};
}

}  // namespace tandem::pv
