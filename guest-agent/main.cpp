// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "guest-agent/agent.hpp"
#include "guest-agent/descriptor_limit.hpp"
#include "guest-agent/first_process.hpp"
#include "guest-agent/guest_facts.hpp"
#include "guest-agent/linux_guest.hpp"
#include "guest-agent/vsock_listener.hpp"

namespace tandem::agent {
namespace {

constexpr const char* kUsage = R"(usage: tandem-agent [--once] [--no-init]

Does for the host what only a program inside the guest can do: runs programs, copies files, freezes file systems,
sets the clock. Listens on vsock port 716, and answers the host alone. As first process of a guest it mounts the
kernel's file systems, and takes the place of init.

  --once      serve one connection, and end
  --no-init   nobody is there to ask for a shutdown: reboot and power off without init
)";

struct Options {
  bool once = false;
  bool no_init = false;
};

int report(const Error& error) {
  std::fprintf(stderr, "tandem-agent: %s\n", error.message().c_str());
  return EXIT_FAILURE;
}

/// A thousand threads and sockets are to fit: small stacks, one heap, enough descriptors.
void make_room() {
  constexpr size_t kStackBytes = 256U << 10;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
  ::mallopt(M_ARENA_MAX, 1);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit = roomy_descriptor_limit(limit);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Blocks the signals that end the agent, and makes them readable.
UniqueFd ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC));
}

/// Accepts connections until a signal ends the agent.
Result<void> listen_and_serve(const VsockListener& listener, Agent& agent, const UniqueFd& signals,
                              const Options& options) {
  constexpr unsigned kPauseUs = 100'000;
  std::array<pollfd, 2> entries{{{listener.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
  while (true) {
    if (::poll(entries.data(), entries.size(), -1) < 0) {
      return fail_errno("poll");
    }
    if (entries[1].revents != 0) {
      return {};
    }
    auto socket = listener.accept();
    if (!socket) {
      ::usleep(kPauseUs);
    } else if (*socket && options.once) {
      agent.serve_here(std::move(*socket));
      return {};
    } else if (*socket) {
      agent.serve(std::move(*socket));
    }
  }
}

Result<void> run(const Options& options) {
  SessionContext* context = nullptr;  // never freed: threads of clients may outlive this function
  const UniqueFd signals = ending_signals();
  const EventSources events;
  ::mkdir(events.folder.c_str(), 0755);
  auto* const guest = new LinuxGuest(options.no_init ? Shutdown::kByUs : Shutdown::kByInit);
  auto* const freezer = new Freezer(*guest, events.folder + "/frozen");
  const VsockListener listener = TANDEM_TRY(VsockListener::create(kAgentPort));
  freezer->thaw_what_was_left();
  context = new SessionContext{*guest, *freezer, events, "", uptime_ns()};
  auto* const agent = new Agent(*context);
  const auto ended = listen_and_serve(listener, *agent, signals, options);
  freezer->end();
  return ended;
}

int start(std::span<char* const> arguments) {
  Options options;
  for (const std::string_view argument : arguments.subspan(1)) {
    if (argument == "--once") {
      options.once = true;
    } else if (argument == "--no-init") {
      options.no_init = true;
    } else if (argument == "--help" || argument == "-h") {
      return std::fputs(kUsage, stdout) < 0 || std::fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    } else if (argument == "--version") {
      return std::puts("tandem-agent " TANDEM_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    } else if (::getpid() != 1) {  // the kernel gives its first process whatever it does not know itself
      constexpr int kExitUsage = 2;
      std::fprintf(stderr, "tandem-agent: unknown option %.60s (see --help)\n", argument.data());
      return kExitUsage;
    }
  }
  if (::getpid() == 1) {
    mount_kernel_filesystems();
    become_init();
    options = {.once = false, .no_init = true};
  }
  open_missing_streams();
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 0);
  ::setenv("HOME", "/root", 0);
  ::signal(SIGPIPE, SIG_IGN);  // a program that reads no more of its input is none of our business
  make_room();
  const auto ended = run(options);
  return ended ? EXIT_SUCCESS : report(ended.error());
}

}  // namespace
}  // namespace tandem::agent

int main(int argc, char** argv) { return tandem::agent::start({argv, static_cast<size_t>(argc)}); }
