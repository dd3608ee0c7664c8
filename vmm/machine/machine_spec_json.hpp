// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/lib/result/result.hpp"
#include "vmm/machine/machine_spec.hpp"

/// The spec document: a machine's description as it travels in snapshots and migrations, JSON. What there is for the guest
/// to see stands at the top; "defaults" holds what the source called things on its own host.
namespace tandem {

/// Longest spec document that is read [bytes].
inline constexpr size_t kMaxSpecDocumentBytes = 1U << 20;

/// The document of a machine.
/// @pre  the spec is resolved: it names the GIC's version and every network address.
[[nodiscard]] std::string to_json(const MachineSpec& spec);

/// The resolved spec in a document, which may be hostile: every limit of MachineSpec holds for the result.
/// @errors  Errc::kCorrupt: not such a document; the message is one line that says where.
Result<MachineSpec> machine_spec_from_json(std::string_view document);

/// In what the guest would see one machine differ from the other: one line each; none if it would see no difference. Names of
/// things on the host do not count.
[[nodiscard]] std::vector<std::string> differences(const MachineSpec& saved, const MachineSpec& here);

}  // namespace tandem
