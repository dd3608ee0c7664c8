// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "vmm/control/agent_client.hpp"

namespace tandem::control {

/// Where the streams of a program in the guest go on the host; none of them is closed.
struct ProgramStreams {
  int input = -1;   ///< -1: it has none.
  int output = -1;  ///< -1: what comes is dropped.
  int errors = -1;  ///< As `output`.
  int signals =
      -1;  ///< A signalfd: the first signal goes to the program, the second ends the connection, which kills it.
};

/// Carries the streams of a program in the guest to and from those of the host, byte for byte, until it ends. A stream of the
/// host that does not take what comes holds up that program alone.
class AgentProgram {
 public:
  /// @pre  SIGPIPE is ignored.
  AgentProgram(AgentClient& client, const ProgramStreams& streams) : client_(client), streams_(streams) {}

  /// Runs it. @errors  why it could not be started, or not be followed to its end; it is killed then.
  Result<agent::ExecEnded> run(const agent::ExecRequest& request);

 private:
  /// What came for a stream of the host that has not taken it yet.
  struct Pending {
    std::vector<std::byte> bytes{};
    size_t written = 0;
    [[nodiscard]] bool is_empty() const { return written == bytes.size(); }
  };

  Result<void> step();
  Result<void> take_frames();
  Result<void> take(agent::Frame frame);
  Result<void> send_input();
  Result<void> pass_signal();
  static Result<void> write_pending(Pending& pending, int fd, const char* name);

  AgentClient& client_;
  const ProgramStreams streams_;
  uint64_t credit_ = agent::kInputWindowBytes;
  bool input_ended_ = false;
  bool signal_passed_ = false;
  Pending output_;
  Pending errors_;
  std::optional<agent::ExecEnded> ended_;
};

}  // namespace tandem::control
