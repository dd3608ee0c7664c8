// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "guest-agent/protocol/frame_channel.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::control {

/// Longest path of a socket [bytes]: sun_path of sockaddr_un without the NUL.
inline constexpr size_t kMaxSocketPathBytes = 107;

/// A connection to a vsock port of the guest whose vsock device has its Unix socket at `path`.
/// @param give_up_fd  no more waiting once it is readable; -1: none.
/// @errors  Errc::kClosed: nothing listens on the port; as connect(2) fails: no VM is there; Errc::kIo: no answer in time, or
///          given up.
Result<UniqueFd> dial_vsock(const std::string& path, uint32_t port, const agent::Deadline& deadline,
                            int give_up_fd = -1);

}  // namespace tandem::control
