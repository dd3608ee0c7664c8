// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace tandem::devices {

/// Finds the keys that are meant for the VMM among those typed at a terminal: Ctrl-A and one more.
class EscapeKeys {
 public:
  struct Actions {
    std::function<void()> quit;       ///< Ctrl-A x
    std::function<void()> show_keys;  ///< Ctrl-A h
  };
  /// What `Actions::show_keys` shows.
  static constexpr const char* kHelp =
      "\nCtrl-A x       end the virtual machine\n"
      "Ctrl-A h       show this\n"
      "Ctrl-A Ctrl-A  send Ctrl-A to the guest (also Ctrl-A a)\n";

  explicit EscapeKeys(Actions actions) : actions_(std::move(actions)) {}

  /// Moves what is for the guest to the front of `keys`, and acts on the rest. A key that means nothing after Ctrl-A is
  /// for the guest. @return number of bytes for the guest.
  size_t take(std::span<std::byte> keys);

 private:
  Actions actions_;
  bool escaped_ = false;  // the last key was Ctrl-A
};

}  // namespace tandem::devices
