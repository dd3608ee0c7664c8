// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/machine/machine_spec.hpp"

namespace tandem::cli {

/// What the user calls things on this host that a machine from elsewhere is connected to.
struct HostNames {
  std::optional<std::string> name{};           ///< Of the machine.
  std::map<std::string, std::string> disks{};  ///< Path by id.
  std::map<std::string, std::string> taps{};   ///< Interface by id.
  std::optional<std::string> vsock{};
  std::optional<ConsoleSpec> console{};
  std::optional<ConsoleSpec> hvc{};
  bool operator==(const HostNames&) const = default;
};

/// Takes the value of one `--disk`: ID=PATH.
/// @errors  Errc::kInvalidArgument, as all here: it is none, or the id was given before.
Result<void> take_disk(HostNames& names, std::string_view text);
/// Takes the value of one `--net`: ID=tap=IF.
Result<void> take_net(HostNames& names, std::string_view text);

/// Whether what the machine's source called things may be used for those that the user did not name.
enum class SourceNames : bool { kNotUsed, kUsed };

/// `spec` with the user's names. A console that went to a file at the source goes nowhere else by itself: to open the file
/// would empty it.
/// @errors  Errc::kInvalidArgument: a name is for a device that the machine does not have, or a device has none.
Result<MachineSpec> with_host_names(MachineSpec spec, const HostNames& names, SourceNames source);

}  // namespace tandem::cli
