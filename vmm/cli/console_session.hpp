// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "devices/backend/escape_keys.hpp"
#include "devices/backend/raw_terminal.hpp"
#include "vmm/lib/result/result.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::cli {

/// This process's standard streams, tied to the console of a VM until either end leaves. A terminal on standard input is
/// in raw mode meanwhile.
class ConsoleSession {
 public:
  /// How it ended.
  enum class End : uint8_t {
    kDetached,  ///< By the user.
    kClosed,    ///< By the VM.
  };

  /// @param console  carries the bytes of the console.
  /// @pre  no RawTerminal exists; SIGPIPE is ignored.
  explicit ConsoleSession(UniqueFd console);

  /// @param shown_first  what came from the console already.
  /// @errors  as standard output cannot be written.
  Result<End> run(std::string shown_first);

 private:
  Result<void> show(std::string_view bytes);
  void take_keys();
  void send_keys();
  Result<bool> take_output();

  UniqueFd console_;
  const bool is_terminal_;
  devices::EscapeKeys keys_;
  bool detached_ = false;
  bool input_ended_ = false;
  std::string unsent_;  // typed, and not taken by the VM yet
};

}  // namespace tandem::cli
