// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/stdio_backend.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

/// How often a background process looks whether it has come to the foreground: nothing tells it.
constexpr uint64_t kForegroundPollNs = 500'000'000;

}  // namespace

StdioBackend::StdioBackend(const Options& options)
    : input_fd_(options.input_fd), keys_({.quit = options.on_quit, .show_keys = show_keys}) {}

Result<std::unique_ptr<StdioBackend>> StdioBackend::create(DeviceExecutor& executor, const Options& options) {
  std::unique_ptr<StdioBackend> backend(new StdioBackend(options));
  TANDEM_TRY(with_context(backend->open_output(executor, options.output_fd), "standard output"));
  TANDEM_TRY(with_context(backend->open_input(executor), "standard input"));
  return backend;
}

Result<void> StdioBackend::open_output(DeviceExecutor& executor, int output_fd) {
  output_ = TANDEM_TRY(CharOutput::create(executor, CharOutput::Unattached::kDrop));
  auto descriptor = TANDEM_TRY(CharDescriptor::share(output_fd, CharDescriptor::Direction::kWrite));
  return output_->attach(std::move(descriptor), [] { log::debug("standard output: no one reads it any more"); });
}

Result<void> StdioBackend::open_input(DeviceExecutor& executor) {
  if (::isatty(input_fd_) != 1) {
    input_ = TANDEM_TRY(CharInput::create(executor));
    return attach_input();
  }
  input_ = TANDEM_TRY(CharInput::create(executor, [this](std::span<std::byte> bytes) { return keys_.take(bytes); }));
  foreground_poll_ =
      TANDEM_TRY(LoopTimer::create(executor, LoopTimer::Base::kMonotonic, [this] { enter_foreground(); }));
  terminal_ = TANDEM_TRY(RawTerminal::create(input_fd_));
  enter_foreground();
  return {};
}

Result<void> StdioBackend::attach_input() {
  auto descriptor = TANDEM_TRY(CharDescriptor::share(input_fd_, CharDescriptor::Direction::kRead));
  return input_->attach(std::move(descriptor), [this](IoStatus status) {
    if (status == IoStatus::kBackground) {
      foreground_poll_->arm_after_ns(kForegroundPollNs);
    }
  });
}

void StdioBackend::enter_foreground() {
  if (!is_in_foreground(input_fd_)) {
    foreground_poll_->arm_after_ns(kForegroundPollNs);
    return;
  }
  terminal_->enter();
  if (const auto done = attach_input(); !done) {
    log::warn("standard input: {}", done.error().message());
  }
}

void StdioBackend::show_keys() {
  // Best effort, like any message.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, EscapeKeys::kHelp, std::strlen(EscapeKeys::kHelp));
}

void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) {
      // The lowest free number is this one: all below are open.
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
    }
  }
}

}  // namespace tandem::devices
