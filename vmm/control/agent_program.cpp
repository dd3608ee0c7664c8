// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/agent_program.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tandem::control {
namespace {

using agent::Frame;
using agent::FrameKind;

/// As much as a pipe takes without waiting once poll(2) calls it writable.
constexpr size_t kPieceBytes = 4096;

}  // namespace

Result<agent::ExecEnded> AgentProgram::run(const agent::ExecRequest& request) {
  TANDEM_TRY(client_.ask<agent::ExecStarted>(request));
  TANDEM_TRY(take_frames());  // more may have come with the answer
  while (!ended_) {
    TANDEM_TRY(step());
  }
  return *ended_;
}

Result<void> AgentProgram::step() {
  agent::FrameChannel& channel = client_.channel();
  TANDEM_TRY(channel.flush());
  // Nothing more is taken from the guest before the host has taken what came.
  const bool is_taken = output_.is_empty() && errors_.is_empty();
  const bool may_send = channel.queued_bytes() == 0;
  const bool wants_input = !input_ended_ && may_send && credit_ > 0;
  const auto channel_events = static_cast<short>((is_taken ? POLLIN : 0) | (may_send ? 0 : POLLOUT));
  std::array<pollfd, 5> entries{{{channel.fd(), channel_events, 0},
                                 {wants_input ? streams_.input : -1, POLLIN, 0},
                                 {output_.is_empty() ? -1 : streams_.output, POLLOUT, 0},
                                 {errors_.is_empty() ? -1 : streams_.errors, POLLOUT, 0},
                                 {streams_.signals, POLLIN, 0}}};
  if (wants_input && streams_.input < 0) {
    return send_input();
  }
  if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) {
    return fail_errno("poll");
  }
  if (entries[4].revents != 0) {
    TANDEM_TRY(pass_signal());
  }
  if (entries[2].revents != 0) {
    TANDEM_TRY(write_pending(output_, streams_.output, "standard output"));
  }
  if (entries[3].revents != 0) {
    TANDEM_TRY(write_pending(errors_, streams_.errors, "standard error"));
  }
  if (entries[1].revents != 0) {
    TANDEM_TRY(send_input());
  }
  if (entries[0].revents != 0) {
    TANDEM_TRY(channel.fill());
  }
  return take_frames();
}

Result<void> AgentProgram::take_frames() {
  while (!ended_ && output_.is_empty() && errors_.is_empty()) {
    auto frame = TANDEM_TRY(client_.channel().next());
    if (!frame) {
      return {};
    }
    TANDEM_TRY(take(std::move(*frame)));
  }
  return {};
}

Result<void> AgentProgram::take(Frame frame) {
  switch (frame.kind) {
    case FrameKind::kOutput:
      output_ = {.bytes = streams_.output < 0 ? std::vector<std::byte>() : std::move(frame.payload)};
      return {};
    case FrameKind::kErrorOutput:
      errors_ = {.bytes = streams_.errors < 0 ? std::vector<std::byte>() : std::move(frame.payload)};
      return {};
    case FrameKind::kCredit:
      credit_ += TANDEM_TRY(agent::credit_of(frame));
      return {};
    case FrameKind::kMessage:
    case FrameKind::kInput:
      break;
  }
  ended_ = TANDEM_TRY(AgentClient::reply_in<agent::ExecEnded>(TANDEM_TRY(agent::message_in(std::move(frame)))));
  return {};
}

Result<void> AgentProgram::send_input() {
  std::array<std::byte, agent::kMaxStreamBytes> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
  const size_t most = static_cast<size_t>(std::min<uint64_t>(credit_, bytes.size()));
  const ssize_t count = streams_.input < 0 ? 0 : ::read(streams_.input, bytes.data(), most);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      return {};
    }
    if (errno != EBADF) {  // a standard input that is closed is one that has ended
      return fail_errno("standard input");
    }
  }
  const auto length = static_cast<size_t>(std::max<ssize_t>(count, 0));
  credit_ -= length;
  input_ended_ = length == 0;
  client_.channel().queue(FrameKind::kInput, std::span(bytes).first(length));
  return {};
}

Result<void> AgentProgram::pass_signal() {
  signalfd_siginfo signal{};
  if (::read(streams_.signals, &signal, sizeof signal) != sizeof signal) {
    return {};
  }
  if (signal_passed_) {
    return fail(Errc::kIo, "interrupted");
  }
  signal_passed_ = true;
  client_.channel().queue(agent::ExecSignal{.signal = signal.ssi_signo});
  return {};
}

Result<void> AgentProgram::write_pending(Pending& pending, int fd, const char* name) {
  const auto rest = std::span(pending.bytes).subspan(pending.written);
  const ssize_t count = ::write(fd, rest.data(), std::min(rest.size(), kPieceBytes));
  if (count < 0 && errno != EAGAIN && errno != EINTR) {
    return fail_errno("{}", name);
  }
  pending.written += static_cast<size_t>(std::max<ssize_t>(count, 0));
  return {};
}

}  // namespace tandem::control
