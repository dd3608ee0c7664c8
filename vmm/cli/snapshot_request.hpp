// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::cli {

/// What `tandem verify` or `tandem info` is asked to do.
struct SnapshotRequest {
  enum class What : uint8_t { kVerify, kInfo };
  What what = What::kVerify;
  std::vector<std::string> directories{};  ///< At least one; one only for kInfo.
  bool json = false;
  bool operator==(const SnapshotRequest&) const = default;
};

}  // namespace tandem::cli
