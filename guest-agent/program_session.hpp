// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "guest-agent/input_queue.hpp"
#include "guest-agent/program.hpp"
#include "guest-agent/protocol/frame_channel.hpp"

namespace tandem::agent {

/// Carries the streams of a program between its pipes and the channel until it ends.
/// @pre  SIGPIPE is ignored.
class ProgramSession {
 public:
  ProgramSession(FrameChannel& channel, Program program, Deadline deadline)
      : channel_(channel), program_(std::move(program)), deadline_(deadline), input_(channel) {}

  /// @errors  the channel's: the program was killed.
  Result<void> run();

 private:
  Result<bool> step();
  Result<void> take_frames();
  Result<void> take(Frame frame);
  void write_input();
  static size_t read_output(FrameChannel& channel, UniqueFd& pipe, FrameKind kind, size_t most);
  void read_rest(UniqueFd& pipe, FrameKind kind);
  Result<void> finish();

  FrameChannel& channel_;
  Program program_;
  Deadline deadline_;
  InputQueue input_;
  bool timed_out_ = false;
};

}  // namespace tandem::agent
