// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// A mounted file system.
struct Mount {
  std::string mount_point{};
  std::string type{};
  std::string source{};
  bool operator==(const Mount&) const = default;
};

/// Those of /proc/self/mountinfo whose file system is on a block device, each device once, in their order. Lines that make no sense
/// are left out.
std::vector<Mount> parse_block_mounts(std::string_view mountinfo);

/// The whole of a file in /proc or /sys, which do not tell their size.
/// @errors  as open(2) and read(2) fail; Errc::kOutOfRange: more than 1 MiB.
Result<std::string> read_kernel_file(const std::string& path);

}  // namespace tandem::agent
