// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/agent_files.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace tandem::control {
namespace {

using agent::Frame;
using agent::FrameKind;

/// Waits until reading or writing will not.
Result<void> wait_for(const FileStream& stream, short events) {
  std::array<pollfd, 2> entries{{{stream.file, events, 0}, {stream.interrupt, POLLIN, 0}}};
  while (::poll(entries.data(), entries.size(), -1) < 0) {
    if (errno != EINTR) {
      return fail_errno("poll");
    }
  }
  if (entries[1].revents != 0) {
    return fail(Errc::kIo, "interrupted");
  }
  return {};
}

Result<std::vector<std::byte>> read_piece(const FileStream& from, size_t most) {
  std::vector<std::byte> bytes(most);
  while (true) {
    TANDEM_TRY(wait_for(from, POLLIN));
    const ssize_t count = ::read(from.file, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.resize(static_cast<size_t>(count));
      return bytes;
    }
    if (errno != EINTR && errno != EAGAIN) {
      return fail_errno("read");
    }
  }
}

}  // namespace

Result<agent::FileReply> put_file(AgentClient& client, const agent::PutRequest& request, const FileStream& from) {
  agent::FrameChannel& channel = client.channel();
  TANDEM_TRY(client.ask<agent::Done>(request));
  uint64_t credit = agent::kInputWindowBytes;
  bool has_ended = false;
  while (true) {
    if (!has_ended && credit > 0) {
      const size_t most = static_cast<size_t>(std::min<uint64_t>(credit, agent::kMaxStreamBytes));
      const std::vector<std::byte> bytes = TANDEM_TRY(read_piece(from, most));
      TANDEM_TRY(channel.send(FrameKind::kInput, bytes));
      credit -= bytes.size();
      has_ended = bytes.empty();
      continue;
    }
    Frame frame = TANDEM_TRY(channel.receive());
    if (frame.kind == FrameKind::kCredit) {
      credit += TANDEM_TRY(agent::credit_of(frame));
    } else {
      return AgentClient::reply_in<agent::FileReply>(TANDEM_TRY(agent::message_in(std::move(frame))));
    }
  }
}

Result<agent::FileReply> get_file(AgentClient& client, const agent::GetRequest& request, const FileStream& to) {
  TANDEM_TRY(client.ask<agent::Done>(request));
  uint64_t size_bytes = 0;
  while (true) {
    Frame frame = TANDEM_TRY(client.channel().receive());
    if (frame.kind == FrameKind::kOutput) {
      TANDEM_TRY(write_all(to, frame.payload));
      size_bytes += frame.payload.size();
      continue;
    }
    const auto end =
        TANDEM_TRY(AgentClient::reply_in<agent::FileReply>(TANDEM_TRY(agent::message_in(std::move(frame)))));
    if (end.size_bytes != size_bytes) {
      return fail(Errc::kCorrupt, "{} bytes came of {}", size_bytes, end.size_bytes);
    }
    return end;
  }
}

Result<void> write_all(const FileStream& to, std::span<const std::byte> bytes) {
  constexpr size_t kPieceBytes = 4096;  // a pipe that is writable takes that without waiting
  while (!bytes.empty()) {
    TANDEM_TRY(wait_for(to, POLLOUT));
    const ssize_t count = ::write(to.file, bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return fail_errno("write");
    }
    bytes = bytes.subspan(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return {};
}

}  // namespace tandem::control
