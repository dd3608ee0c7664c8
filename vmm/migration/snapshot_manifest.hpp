// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/lib/checksum/checksum.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::migration {

/// What a manifest says of a file.
struct FileEntry {
  uint64_t size_bytes = 0;
  Checksum checksum;
  bool operator==(const FileEntry&) const = default;
};

/// A boot image that the machine loads at a reset.
struct ImageEntry {
  std::string role;  ///< "kernel", "initrd".
  FileEntry file;
  bool stored = true;  ///< In this directory; otherwise in one of the chain behind it.
  bool operator==(const ImageEntry&) const = default;
};

/// The snapshot to which another one is the difference.
struct BaseEntry {
  std::string path;   ///< From the directory of the difference to that of its base.
  Checksum manifest;  ///< Of all bytes of the base's manifest.
  bool operator==(const BaseEntry&) const = default;
};

/// What the file `manifest` of a snapshot says: what is in all its other files.
struct SnapshotManifest {
  FileEntry spec;
  FileEntry state;
  uint64_t ram_bytes = 0;
  FileEntry ram_sums;
  std::vector<ImageEntry> images;
  /// Present in a difference only.
  std::optional<BaseEntry> base;
  /// Pages in which the difference is told [bytes]. Present if `base` is.
  std::optional<uint64_t> page_bytes;
  bool operator==(const SnapshotManifest&) const = default;
};

/// The content of the file.
/// @errors  Errc::kInvalidArgument: the base's path is no text; Errc::kOutOfRange: a bound of the format is exceeded.
Result<std::string> encode_manifest(const SnapshotManifest& manifest);

/// What `encode_manifest` made, byte by byte.
/// @errors  Errc::kUnsupported: another format version, or another architecture. Errc::kCorrupt: anything else.
Result<SnapshotManifest> decode_manifest(std::string_view content);

/// Name of the file that holds an image with this checksum.
std::string image_file_name(const Checksum& checksum);

}  // namespace tandem::migration
