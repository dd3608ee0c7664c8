// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/program_session.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace tandem::agent {
namespace {

/// Output is not read from the program while more than this waits for the client.
constexpr size_t kMaxQueuedBytes = 2 * kMaxStreamBytes;

}  // namespace

Result<void> ProgramSession::run() {
  channel_.queue(ExecStarted{.pid = static_cast<uint32_t>(program_.pid())});
  TANDEM_TRY(take_frames());  // more may have come with the request
  while (TANDEM_TRY(step())) {
  }
  return finish();
}

/// Waits for something to do, and does it. @return false: the program has ended.
Result<bool> ProgramSession::step() {
  TANDEM_TRY(channel_.flush());
  const bool has_room = channel_.queued_bytes() < kMaxQueuedBytes;
  const auto output_of = [&](const UniqueFd& pipe) { return has_room ? pipe.get() : -1; };
  const auto channel_events = static_cast<short>(POLLIN | (channel_.queued_bytes() > 0 ? POLLOUT : 0));
  std::array<pollfd, 5> entries{{{channel_.fd(), channel_events, 0},
                                 {program_.pidfd(), POLLIN, 0},
                                 {output_of(program_.output()), POLLIN, 0},
                                 {output_of(program_.error_output()), POLLIN, 0},
                                 {input_.front().empty() ? -1 : program_.input().get(), POLLOUT, 0}}};
  if (::poll(entries.data(), entries.size(), timed_out_ ? -1 : deadline_.poll_timeout_ms()) < 0 && errno != EINTR) {
    return fail_errno("poll");
  }
  const auto is_ready = [&](size_t index) { return entries.at(index).revents != 0; };
  if (is_ready(0)) {
    TANDEM_TRY(channel_.fill());
    TANDEM_TRY(take_frames());
  }
  if (is_ready(2)) {
    read_output(channel_, program_.output(), FrameKind::kOutput, kMaxStreamBytes);
  }
  if (is_ready(3)) {
    read_output(channel_, program_.error_output(), FrameKind::kErrorOutput, kMaxStreamBytes);
  }
  write_input();
  if (is_ready(1)) {
    return false;
  }
  if (!timed_out_ && deadline_.has_passed()) {
    timed_out_ = true;
    TANDEM_TRY(program_.signal(SIGKILL));
  }
  return true;
}

Result<void> ProgramSession::take_frames() {
  while (auto frame = TANDEM_TRY(channel_.next())) {
    TANDEM_TRY(take(std::move(*frame)));
  }
  return {};
}

Result<void> ProgramSession::take(Frame frame) {
  if (frame.kind == FrameKind::kInput) {
    return input_.push(std::move(frame.payload));
  }
  const Message message = TANDEM_TRY(message_in(std::move(frame)));
  return program_.signal(TANDEM_TRY(message.as<ExecSignal>()).signal);
}

/// Writes what the program takes now. One that has closed its input gets no more, and the client goes on.
void ProgramSession::write_input() {
  while (!input_.front().empty()) {
    if (program_.input()) {
      const auto bytes = input_.front();
      const ssize_t count = ::write(program_.input().get(), bytes.data(), bytes.size());
      if (count >= 0) {
        input_.pop(static_cast<size_t>(count));
        continue;
      }
      if (errno == EAGAIN || errno == EINTR) {
        return;
      }
      program_.input().reset();
    }
    input_.pop(input_.front().size());
  }
  if (input_.is_at_end()) {
    program_.input().reset();
  }
}

/// @return how many bytes were read; 0: nothing is there now.
size_t ProgramSession::read_output(FrameChannel& channel, UniqueFd& pipe, FrameKind kind, size_t most) {
  std::array<std::byte, kMaxStreamBytes / 4> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
  const ssize_t count = ::read(pipe.get(), bytes.data(), std::min(bytes.size(), most));
  if (count > 0) {
    channel.queue(kind, std::span(bytes).first(static_cast<size_t>(count)));
    return static_cast<size_t>(count);
  }
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    pipe.reset();
  }
  return 0;
}

/// What is in the pipe now: a process that the program left behind may go on writing for ever.
void ProgramSession::read_rest(UniqueFd& pipe, FrameKind kind) {
  int waiting = 0;
  if (!pipe || ::ioctl(pipe.get(), FIONREAD, &waiting) != 0) {
    return;
  }
  for (auto left = static_cast<size_t>(waiting); left > 0;) {
    const size_t count = read_output(channel_, pipe, kind, left);
    if (count == 0) {
      return;
    }
    left -= count;
  }
}

Result<void> ProgramSession::finish() {
  read_rest(program_.output(), FrameKind::kOutput);
  read_rest(program_.error_output(), FrameKind::kErrorOutput);
  ExecEnded ended = program_.reap();
  ended.timed_out = timed_out_;
  return channel_.send(ended);
}

}  // namespace tandem::agent
