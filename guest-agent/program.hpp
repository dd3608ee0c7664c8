// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::agent {

/// A program that was started for the host, in a session of its own, with pipes for its standard streams. Its process
/// group is killed when this goes away before the program has ended.
class Program {
 public:
  /// @errors  Errc::kInvalidArgument: the request makes no sense; others: why the program cannot be started.
  static Result<Program> start(const ExecRequest& request);
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable once the program has ended.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }

  /// Our ends of the pipes, non-blocking.
  UniqueFd& input() { return input_; }
  UniqueFd& output() { return output_; }
  UniqueFd& error_output() { return error_output_; }

  /// Sends a signal to the process group. @errors  Errc::kInvalidArgument: no such signal.
  Result<void> signal(uint32_t number) const;

  /// How the program ended; waits until it has.
  ExecEnded reap();

 private:
  Program() = default;
  Result<void> spawn(const ExecRequest& request, const UniqueFd& input, const UniqueFd& output,
                     const UniqueFd& error_output);

  pid_t pid_ = -1;  ///< -1: not started, or reaped.
  UniqueFd pidfd_;
  UniqueFd input_;
  UniqueFd output_;
  UniqueFd error_output_;
};

}  // namespace tandem::agent
