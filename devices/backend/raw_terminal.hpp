// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

/// Raw mode of the process's terminal: every key, Ctrl-C included, is input. Output processing stays on, so that messages
/// of this process and others still begin at the left margin.
///
/// The terminal is given back on every way out of the process but SIGKILL: when this object ends, in `exit`, and on each
/// signal that would end the process, unless it was caught, blocked or ignored before. While the process is stopped the
/// terminal is given back too. It is only ever touched from the foreground: in the background it is someone else's.
class RawTerminal {
 public:
  /// Takes note of how the terminal is now, and enters raw mode if in the foreground.
  /// @pre     no other RawTerminal exists; `fd` is a terminal and stays open.
  /// @errors  Errc::kIo: `fd` is not a terminal.
  static Result<std::unique_ptr<RawTerminal>> create(int fd);
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal();

  /// Enters raw mode again after the process has come to the foreground.
  void enter();

 private:
  RawTerminal() = default;
};

/// Gives the terminal back, if there is a RawTerminal. For signal handlers that end the process.
/// @thread  any, also a signal handler.
void give_terminal_back();

}  // namespace tandem::devices
