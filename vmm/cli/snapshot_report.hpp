// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "vmm/migration/snapshot.hpp"

/// How a snapshot is shown.
namespace tandem::cli {

/// All that `snapshot` says of itself: description, boot images, components, chain.
nlohmann::ordered_json snapshot_report(const migration::Snapshot& snapshot);

/// `report` for people: as `as_text`, and an object as a section of its own.
std::string as_sections(const nlohmann::ordered_json& report);

}  // namespace tandem::cli
