// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "vmm/lib/result/result.hpp"
#include "vmm/machine/machine_spec.hpp"

/// Devices as they are written on the command line. All errors are Errc::kInvalidArgument and say what is wrong with
/// which part.
namespace tandem::cli {

/// Longest id of a device [bytes]: what virtio-blk has room for.
inline constexpr size_t kMaxIdBytes = 20;
/// Longest name of a network interface [bytes]: IFNAMSIZ without the NUL.
inline constexpr size_t kMaxInterfaceBytes = 15;
/// Longest path of a socket [bytes]: sun_path of sockaddr_un without the NUL.
inline constexpr size_t kMaxSocketPathBytes = 107;

/// PATH[,id=ID][,ro]. A comma that belongs to PATH is written twice. The id is left empty if it is not given.
Result<DiskSpec> parse_disk(std::string_view text);

/// tap=IF[,id=ID][,mac=M]; M is six pairs of hexadecimal digits with colons between them.
Result<NetSpec> parse_net(std::string_view text);

/// PATH[,cid=N]. A comma that belongs to PATH is written twice.
Result<VsockSpec> parse_vsock(std::string_view text);

/// stdio, pty, none, file=PATH or socket=PATH.
Result<ConsoleSpec> parse_console(std::string_view text);

}  // namespace tandem::cli
