// SPDX-License-Identifier: Apache-2.0
// The files of a snapshot, of any content, are read to their end or refused; what is accepted is written back the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/migration/ram_sums.hpp"
#include "vmm/migration/snapshot_format.hpp"
#include "vmm/migration/snapshot_manifest.hpp"
#include "vmm/migration/snapshot_state.hpp"

namespace {

using namespace tandem;
using namespace tandem::migration;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void try_manifest(std::string_view content) {
  if (const auto manifest = decode_manifest(content)) {
    require(encode_manifest(*manifest).value() == content);
  }
}

/// Past the checksum, which no input that is made up would pass.
void try_manifest_body(std::string_view body) {
  const std::string checksum = checksum_of(std::as_bytes(std::span(body))).text();
  try_manifest(fmt::format("{} {} {} {} {}\n{}", kSnapshotMagic, kSnapshotVersion, kSnapshotArchitecture, body.size(),
                           checksum, body));
}

void try_state(std::span<const std::byte> content) {
  if (const auto state = decode_machine_state(content)) {
    require(std::ranges::equal(encode_machine_state(*state).value(), content));
  }
}

void try_sums(std::span<const std::byte> content) {
  constexpr uint64_t kRamBytes = 2 * kRamChunkBytes;
  for (const auto page_bytes : {std::optional<uint64_t>(), std::optional<uint64_t>(kRamUnitBytes)}) {
    if (const auto sums = decode_ram_sums(content, kRamBytes, page_bytes)) {
      require(std::ranges::equal(encode_ram_sums(*sums), content));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::span content = std::as_bytes(std::span(bytes, size));
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try_manifest(text);
  try_manifest_body(text);
  try_state(content);
  try_sums(content);
  return 0;
}
