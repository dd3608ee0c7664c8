// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/lib/result/result.hpp"

namespace tandem::pv {

/// A kernel's version, as far as features depend on it.
struct KernelVersion {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

/// The version that uname(2)'s release begins with: "6.12.117+deb12-arm64" is 6.12. Nothing if it begins with none.
std::optional<KernelVersion> parse_kernel_release(std::string_view release);

/// The first kernel that the BPF back end works on: the one that lets a VMM answer hypercalls.
inline constexpr KernelVersion kFirstKernelForBpf{.major = 6, .minor = 4};

/// What is known of a host whose kernel has refused the BPF program.
struct BpfHost {
  std::string release;            ///< uname(2)'s.
  bool has_capabilities = false;  ///< CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN instead of either.
  bool has_type_information = false;
  bool is_confidential = false;  ///< The kernel's lockdown is at its highest level.

  /// Asks this host. @thread any.
  static BpfHost current();
};

/// The one line that says why: the most likely reason that errno and the host's facts give.
/// @param doing     the system call's purpose, for the reasons that have no better words.
/// @param os_error  errno of the call that failed.
Error explain_refusal(const BpfHost& host, std::string_view doing, int os_error);

}  // namespace tandem::pv
