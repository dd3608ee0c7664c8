// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/backend/char_input.hpp"
#include "devices/backend/char_output.hpp"
#include "devices/backend/escape_keys.hpp"
#include "devices/backend/raw_terminal.hpp"

namespace tandem::devices {

/// Console on standard input and output. A terminal on input is put into raw mode, and escape keys are looked for there;
/// any other input is passed on unchanged. In the background the terminal is left alone, until the process comes to the
/// foreground.
class StdioBackend final : public CharBackend {
 public:
  struct Options {
    std::function<void()> on_quit;  ///< The user asks for the end. Called on the event loop, under the device's mutex.
    int input_fd = 0;               ///< Stays open as long as the backend, as does `output_fd`.
    int output_fd = 1;
  };

  /// @pre     the loop is not running, or the executor's mutex is held.
  static Result<std::unique_ptr<StdioBackend>> create(DeviceExecutor& executor, const Options& options);

  void write(std::span<const std::byte> bytes) override { output_->write(bytes); }
  [[nodiscard]] uint64_t dropped_bytes() const override { return output_->dropped_bytes(); }
  void set_sink(CharSink* sink) override { input_->set_sink(sink); }
  void resume_input() override { input_->resume_input(); }
  [[nodiscard]] std::string endpoint() const override { return "standard input and output"; }

 private:
  explicit StdioBackend(const Options& options);
  Result<void> open_output(DeviceExecutor& executor, int output_fd);
  Result<void> open_input(DeviceExecutor& executor);
  Result<void> attach_input();
  void enter_foreground();
  static void show_keys();

  const int input_fd_;
  EscapeKeys keys_;
  std::unique_ptr<RawTerminal> terminal_;       // none unless standard input is a terminal
  std::unique_ptr<LoopTimer> foreground_poll_;  // as terminal_; armed while in the background
  std::unique_ptr<CharOutput> output_;
  std::unique_ptr<CharInput> input_;
};

/// Opens /dev/null in the place of each closed descriptor among 0, 1 and 2, so that no other file gets its number.
/// @pre no file was opened yet.
void fill_standard_descriptors();

}  // namespace tandem::devices
