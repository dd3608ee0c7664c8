// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vmm/control/agent_client.hpp"

namespace tandem::control {

/// The host's end of a file's way: a descriptor that is read or written, and one that is readable once it is to end (or -1).
struct FileStream {
  int file = -1;
  int interrupt = -1;
};

/// Makes a file of the guest out of what `from` gives until its end.
Result<agent::FileReply> put_file(AgentClient& client, const agent::PutRequest& request, const FileStream& from);

/// Writes a file of the guest to `to`.
Result<agent::FileReply> get_file(AgentClient& client, const agent::GetRequest& request, const FileStream& to);

/// Writes all of `bytes`. @errors  Errc::kIo: interrupted; as write(2) fails.
Result<void> write_all(const FileStream& to, std::span<const std::byte> bytes);

}  // namespace tandem::control
