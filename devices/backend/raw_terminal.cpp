// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/raw_terminal.hpp"

#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>

#include "devices/backend/char_descriptor.hpp"

namespace tandem::devices {
namespace {

/// What signal handlers need; they can be handed nothing. Written before `fd` is, and not after.
struct Modes {
  std::atomic<int> fd{-1};
  termios found{};
  termios raw{};
};
Modes modes;

/// Of those that end a process by default, all that can be caught.
constexpr std::array kFatalSignals{SIGHUP,  SIGINT,  SIGQUIT,   SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                   SIGFPE,  SIGUSR1, SIGSEGV,   SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,
                                   SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSYS};

void set_modes(const termios& wanted) {
  const int fd = modes.fd.load();
  if (fd < 0 || !is_in_foreground(fd)) {
    return;
  }
  // Were the foreground lost since, the change would stop the process.
  sigset_t block;
  sigset_t before;
  sigemptyset(&block);
  sigaddset(&block, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &block, &before);
  ::tcsetattr(fd, TCSANOW, &wanted);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fatal_signal(int signal) {
  give_terminal_back();
  ::raise(signal);  // its default action is in place again (SA_RESETHAND)
}

void on_stop(int /*signal*/) {
  const int saved_errno = errno;
  give_terminal_back();
  ::kill(::getpid(), SIGSTOP);
  errno = saved_errno;
}

void on_continue(int /*signal*/) {
  const int saved_errno = errno;
  set_modes(modes.raw);
  errno = saved_errno;
}

/// Installs `handler` unless the process has its own way with the signal.
void handle_if_default(int signal, void (*handler)(int), int flags) {
  struct sigaction now{};
  if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) {
    return;
  }
  struct sigaction ours{};
  ours.sa_handler = handler;
  ours.sa_flags = flags;
  ::sigaction(signal, &ours, nullptr);
}

void install_handlers() {
  for (const int signal : kFatalSignals) {
    handle_if_default(signal, on_fatal_signal, static_cast<int>(SA_RESETHAND | SA_NODEFER));
  }
  handle_if_default(SIGTSTP, on_stop, SA_RESTART);
  handle_if_default(SIGCONT, on_continue, SA_RESTART);
  std::atexit(give_terminal_back);
}

}  // namespace

Result<std::unique_ptr<RawTerminal>> RawTerminal::create(int fd) {
  TANDEM_ASSERT(modes.fd.load() < 0, "a process has one terminal");
  if (::tcgetattr(fd, &modes.found) != 0) {
    return fail_errno("terminal modes of descriptor {}", fd);
  }
  modes.raw = modes.found;
  ::cfmakeraw(&modes.raw);
  modes.raw.c_oflag |= modes.found.c_oflag & OPOST;
  modes.fd = fd;
  static const bool once = (install_handlers(), true);
  static_cast<void>(once);
  std::unique_ptr<RawTerminal> terminal(new RawTerminal());
  terminal->enter();
  return terminal;
}

RawTerminal::~RawTerminal() {
  give_terminal_back();
  modes.fd = -1;
}

void RawTerminal::enter() { set_modes(modes.raw); }

void give_terminal_back() { set_modes(modes.found); }

}  // namespace tandem::devices
