// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/lib/state/machine_state.hpp"

/// The file `state` of a snapshot: the record of each component, framed.
namespace tandem::migration {

/// The content of the file.
/// @errors  Errc::kOutOfRange: more than is read back.
Result<std::vector<std::byte>> encode_machine_state(const MachineState& state);

/// What `encode_machine_state` made.
/// @errors  Errc::kCorrupt: anything else.
Result<MachineState> decode_machine_state(std::span<const std::byte> content);

}  // namespace tandem::migration
