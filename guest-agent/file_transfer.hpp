// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "guest-agent/protocol/frame_channel.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::agent {

/// Makes the file that a client sends: beside its place first, then renamed to it.
/// @errors  the channel's, or why the file cannot be written; nothing is left of it then.
Result<void> receive_file(FrameChannel& channel, const PutRequest& request);

/// Sends a file to the client. @errors  the channel's, or why the file cannot be read.
Result<void> send_file(FrameChannel& channel, const GetRequest& request);

}  // namespace tandem::agent
