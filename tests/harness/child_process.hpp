// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::tests {

/// A program under test, with its three standard streams in our hands. Killed when it goes out of scope.
/// Time limits are there for programs that hang; no test may depend on how fast a program is.
class ChildProcess {
 public:
  using Seconds = std::chrono::seconds;

  /// How a stream of the program is connected. kTerminal gives it one pseudo-terminal for all three streams.
  enum class Streams { kPipes, kTerminal };

  /// Starts `arguments[0]`, looked up in PATH. A program that cannot be started ends with status 127.
  explicit ChildProcess(const std::vector<std::string>& arguments, Streams streams = Streams::kPipes);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// What was written so far to standard output (with kTerminal, and to standard error), and standard error.
  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] const std::string& errors() const { return errors_; }
  /// The terminal's file descriptor, ours; only with kTerminal.
  [[nodiscard]] int terminal() const { return input_.get(); }

  /// Queues input; it is written while one of the functions below waits.
  void send(std::string_view input) { pending_input_ += input; }
  /// Ends the input once all that is queued is written.
  void close_input() { close_input_ = true; }
  void signal(int number) const;

  /// Waits until `text` occurs in the output at or behind `from`; returns the place behind it, or nothing if
  /// the program ends or the time is over first.
  [[nodiscard]] std::optional<size_t> wait_for(std::string_view text, size_t from = 0, Seconds limit = Seconds(300));
  /// Waits for the end; returns the exit status, 128+N for signal N, or nothing if the time is over first.
  /// With `reads` false the output is left in the pipe until then.
  [[nodiscard]] std::optional<int> wait(Seconds limit = Seconds(300), bool reads = true);

 private:
  bool pump(std::chrono::steady_clock::time_point deadline, bool reads);
  void write_pending();
  static void drain(UniqueFd& fd, std::string& text);
  void note_exit();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd input_;
  UniqueFd output_fd_;
  UniqueFd error_fd_;
  std::string pending_input_;
  bool close_input_ = false;
  std::string output_;
  std::string errors_;
  std::optional<int> status_;
};

}  // namespace tandem::tests
