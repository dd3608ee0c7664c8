// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/child_process.hpp"
#include "tests/system/guest_fixture.hpp"

namespace tandem::tests {

/// A virtual machine that moves from process to process.
class MovingGuest {
 public:
  /// What the nth `tandem receive` or `tandem restore` is called with beside its address or directory, and a name.
  using Options = std::function<std::vector<std::string>(unsigned move)>;

  /// Starts `run`, a `tandem run …` without a name.
  /// @param folder  for sockets; exists.
  MovingGuest(std::vector<std::string> run, std::string folder, Options options);

  /// Moves it to a new process. @param options  more of `tandem migrate`.
  CommandResult move(const std::vector<std::string>& options = {});
  /// Saves it, which ends its process, and restores it in a new one. @param options  more of `tandem save`.
  CommandResult save_and_restore(const std::vector<std::string>& options = {});
  /// Saves it, which ends its process. @return what `tandem save` said.
  CommandResult save(const std::vector<std::string>& options = {});
  /// Restores what `save` has saved last, in a new process. @param options  more of `tandem restore`.
  void restore(const std::vector<std::string>& options = {});
  /// Starts a `tandem receive`, and waits until it listens. @return its process.
  std::unique_ptr<ChildProcess> start_receiver(const std::vector<std::string>& options);
  /// The address of the last receiver.
  [[nodiscard]] std::string address() const { return "unix:" + folder_ + "/receive" + std::to_string(receivers_); }
  /// `tandem migrate` to the last receiver.
  [[nodiscard]] CommandResult migrate(const std::vector<std::string>& options);

  /// Under which it is known now.
  [[nodiscard]] std::string name() const { return "guest" + std::to_string(moves_); }
  [[nodiscard]] unsigned moves() const { return moves_; }
  /// The process that runs it now, and the one that ran it before.
  ChildProcess& process() { return *process_; }
  ChildProcess& last_process() { return *last_process_; }

 private:
  void go_on_as(std::unique_ptr<ChildProcess> process);
  [[nodiscard]] std::string snapshot() const { return folder_ + "/snapshot"; }
  [[nodiscard]] std::vector<std::string> next_options() const;

  std::string folder_;
  Options options_;
  unsigned moves_ = 0;
  unsigned receivers_ = 0;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<ChildProcess> last_process_;
};

}  // namespace tandem::tests
