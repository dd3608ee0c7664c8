// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/console_session.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

namespace tandem::cli {
namespace {

constexpr std::string_view kHelp =
    "\nCtrl-A x       detach; the virtual machine goes on\n"
    "Ctrl-A h       show this\n"
    "Ctrl-A Ctrl-A  send Ctrl-A to the guest (also Ctrl-A a)\n";
/// Most keys that wait for a guest that takes none; more are lost, so that the escape keys are still seen.
constexpr size_t kMaxUnsentBytes = 64U << 10;

void show_keys() {
  // Best effort, like any message.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kHelp.data(), kHelp.size());
}

}  // namespace

ConsoleSession::ConsoleSession(UniqueFd console)
    : console_(std::move(console)),
      is_terminal_(::isatty(STDIN_FILENO) == 1),
      keys_({.quit = [this] { detached_ = true; }, .show_keys = show_keys}) {}

Result<ConsoleSession::End> ConsoleSession::run(std::string shown_first) {
  std::unique_ptr<devices::RawTerminal> terminal;
  if (is_terminal_) {
    terminal = TANDEM_TRY(devices::RawTerminal::create(STDIN_FILENO));
  }
  TANDEM_TRY(show(shown_first));
  while (!detached_) {
    const bool wants_keys = !input_ended_ && (is_terminal_ || unsent_.size() < kMaxUnsentBytes);
    const auto console_events = static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT));
    std::array<pollfd, 2> entries{{{console_.get(), console_events, 0}, {wants_keys ? STDIN_FILENO : -1, POLLIN, 0}}};
    if (::poll(entries.data(), entries.size(), -1) < 0) {
      if (errno != EINTR) {
        return fail_errno("poll");
      }
      continue;
    }
    if (entries[1].revents != 0) {
      take_keys();
    }
    send_keys();
    if ((entries[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !TANDEM_TRY(take_output())) {
      return End::kClosed;
    }
  }
  return End::kDetached;
}

Result<void> ConsoleSession::show(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EAGAIN) {
      pollfd entry{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      ::poll(&entry, 1, -1);
    } else if (count < 0 && errno != EINTR) {
      return fail_errno("standard output");
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return {};
}

void ConsoleSession::take_keys() {
  std::array<std::byte, 4096> typed;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
  const ssize_t count = ::read(STDIN_FILENO, typed.data(), typed.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
    return;
  }
  if (count <= 0) {
    input_ended_ = true;
    return;
  }
  const auto bytes = std::span(typed).first(static_cast<size_t>(count));
  const size_t kept = is_terminal_ ? keys_.take(bytes) : bytes.size();
  if (unsent_.size() + kept <= kMaxUnsentBytes || !is_terminal_) {
    unsent_.append(reinterpret_cast<const char*>(bytes.data()), kept);
  }
}

void ConsoleSession::send_keys() {
  if (unsent_.empty()) {
    return;
  }
  const ssize_t count = ::send(console_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  unsent_.erase(0, static_cast<size_t>(std::max<ssize_t>(count, 0)));  // a broken connection is seen when it is read
}

/// @return false: the VM has left.
Result<bool> ConsoleSession::take_output() {
  std::array<char, 16384> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t count = ::recv(console_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return true;
  }
  if (count > 0) {
    TANDEM_TRY(show({bytes.data(), static_cast<size_t>(count)}));
  }
  return count > 0;
}

}  // namespace tandem::cli
