// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
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
  std::string device{};  ///< Of the file system, as mountinfo has it: "254:0".
  uint64_t id = 0;       ///< Of the mount, the kernel's.
  bool operator==(const Mount&) const = default;
};

/// Those of /proc/self/mountinfo whose file system is on a block device, in their order. Lines that make no sense are left out.
std::vector<Mount> parse_block_mounts(std::string_view mountinfo);

/// Each device once, in the order of their first mounts: the first of its mounts that is on top. A device all of whose mounts
/// are hidden by others is left out: no path leads to it.
std::vector<Mount> each_once(const std::vector<Mount>& mounts, const std::function<bool(const Mount&)>& is_on_top);

/// Whether the mount point's path leads to this mount, rather than to another one that hides it.
bool is_on_top(const Mount& mount);

/// The whole of a file in /proc or /sys, which do not tell their size.
/// @errors  as open(2) and read(2) fail; Errc::kOutOfRange: more than 1 MiB.
Result<std::string> read_kernel_file(const std::string& path);

}  // namespace tandem::agent
