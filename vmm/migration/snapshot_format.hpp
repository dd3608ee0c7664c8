// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Names, numbers and bounds of the snapshot format, version 1: see docs/snapshot-format.md.
namespace tandem::migration {

/// First word of a manifest.
inline constexpr std::string_view kSnapshotMagic = "TANDEM-SNAPSHOT";
inline constexpr uint32_t kSnapshotVersion = 1;
/// Architecture of the guests whose snapshots these are.
inline constexpr std::string_view kSnapshotArchitecture = "aarch64";

// Files of a snapshot's directory.
inline constexpr const char* kManifestName = "manifest";
inline constexpr const char* kSpecName = "spec";
inline constexpr const char* kStateName = "state";
inline constexpr const char* kRamName = "ram";
inline constexpr const char* kRamSumsName = "ram.sums";
inline constexpr std::string_view kImagePrefix = "image-";

/// Unit in which RAM has checksums, and of its size [bytes].
inline constexpr uint64_t kRamChunkBytes = 2U << 20;
/// Unit in which zeros become holes, and smallest page in which a difference is told [bytes].
inline constexpr uint64_t kRamUnitBytes = 4096;

// Bounds of what is read back; more is refused as corrupt.
inline constexpr uint64_t kMaxManifestBytes = 64U << 10;
inline constexpr uint64_t kMaxSpecFileBytes = 1U << 20;
inline constexpr uint64_t kMaxStateFileBytes = 256U << 20;
inline constexpr uint64_t kMaxRamFileBytes = uint64_t{4} << 40;
inline constexpr size_t kMaxStateComponents = 4096;
inline constexpr size_t kMaxStateNameBytes = 64;
inline constexpr size_t kMaxBootImages = 8;
inline constexpr size_t kMaxImageRoleBytes = 32;
inline constexpr size_t kMaxBasePathBytes = 4095;
/// Most directories of a chain: a full snapshot and the differences to it.
inline constexpr size_t kMaxChainLength = 64;

}  // namespace tandem::migration
