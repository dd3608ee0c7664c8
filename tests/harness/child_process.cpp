// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/child_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace tandem::tests {
namespace {

constexpr int kCannotStart = 127;
constexpr int kPipeBytes = 4096;  // small, so that a reader who does not read is soon noticed

[[noreturn]] void give_up(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// Our end and the program's end of one stream.
struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

Pair make_pipe(bool program_reads) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    give_up("pipe2");
  }
  Pair pair{UniqueFd(ends[program_reads ? 1 : 0]), UniqueFd(ends[program_reads ? 0 : 1])};
  ::fcntl(pair.ours.get(), F_SETPIPE_SZ, kPipeBytes);
  ::fcntl(pair.ours.get(), F_SETFL, O_NONBLOCK);
  return pair;
}

Pair make_terminal() {
  UniqueFd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!ours || ::grantpt(ours.get()) != 0 || ::unlockpt(ours.get()) != 0) {
    give_up("posix_openpt");
  }
  UniqueFd theirs(::open(::ptsname(ours.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs) {
    give_up("open of the terminal");
  }
  return {std::move(ours), std::move(theirs)};
}

/// In the new process: standard streams, terminal if it has one, default signals, the program.
[[noreturn]] void become(const std::vector<std::string>& arguments, std::array<int, 3> streams, bool has_terminal) {
  ::setsid();
  if (has_terminal) {
    ::ioctl(streams[0], TIOCSCTTY, 0);
  }
  for (int fd = 0; fd < 3; ++fd) {
    ::dup2(streams[static_cast<size_t>(fd)], fd);
  }
  std::vector<char*> words;
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(kCannotStart);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, Streams streams) {
  const bool has_terminal = streams == Streams::kTerminal;
  Pair in = has_terminal ? make_terminal() : make_pipe(true);
  Pair out = has_terminal ? Pair{} : make_pipe(false);
  Pair err = has_terminal ? Pair{} : make_pipe(false);
  const int tty = in.theirs.get();
  const std::array<int, 3> theirs{tty, has_terminal ? tty : out.theirs.get(), has_terminal ? tty : err.theirs.get()};
  std::signal(SIGPIPE, SIG_IGN);
  pid_ = ::fork();
  if (pid_ < 0) {
    give_up("fork");
  }
  if (pid_ == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    become(arguments, theirs, has_terminal);
  }
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  input_ = std::move(in.ours);
  output_fd_ = std::move(out.ours);
  error_fd_ = std::move(err.ours);
}

ChildProcess::~ChildProcess() {
  if (!status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void ChildProcess::signal(int number) const { ::kill(pid_, number); }

void ChildProcess::drain(UniqueFd& fd, std::string& text) {
  std::array<char, 65536> buffer;
  while (fd) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<size_t>(count));
    } else if (count < 0 && (errno == EAGAIN || errno == EIO)) {
      return;  // EIO: a terminal that nobody has open
    } else if (count == 0 || errno != EINTR) {
      fd.reset();
    }
  }
}

void ChildProcess::write_pending() {
  if (!pending_input_.empty()) {
    const ssize_t count = ::write(input_.get(), pending_input_.data(), pending_input_.size());
    if (count > 0) {
      pending_input_.erase(0, static_cast<size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      pending_input_.clear();  // nobody reads it any more
    }
  }
  if (pending_input_.empty() && close_input_) {
    input_.reset();
  }
}

void ChildProcess::note_exit() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

/// Moves what can be moved, and waits for more if nothing could. @return false once the time is over.
bool ChildProcess::pump(std::chrono::steady_clock::time_point deadline, bool reads) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) {
    return false;
  }
  const bool is_terminal = !output_fd_ && !error_fd_ && input_;
  const short input_events =
      static_cast<short>((pending_input_.empty() && !close_input_ ? 0 : POLLOUT) | (is_terminal && reads ? POLLIN : 0));
  std::array<pollfd, 4> fds{
      pollfd{pidfd_.get(), POLLIN, 0}, pollfd{input_events == 0 ? -1 : input_.get(), input_events, 0},
      pollfd{reads ? output_fd_.get() : -1, POLLIN, 0}, pollfd{reads ? error_fd_.get() : -1, POLLIN, 0}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
    give_up("poll");
  }
  note_exit();  // before reading: what it wrote before it ended is then read
  if ((fds[1].revents & (POLLOUT | POLLERR)) != 0) {
    write_pending();
  }
  if (reads || status_) {
    drain(is_terminal ? input_ : output_fd_, output_);
    drain(error_fd_, errors_);
  }
  return true;
}

std::optional<size_t> ChildProcess::wait_for(std::string_view text, size_t from, Seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (const size_t place = output_.find(text, from); place != std::string::npos) {
      return place + text.size();
    }
    if (status_ || !pump(deadline, true)) {
      return std::nullopt;
    }
  }
}

std::optional<int> ChildProcess::wait(Seconds limit, bool reads) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!status_ && pump(deadline, reads)) {
  }
  return status_;
}

}  // namespace tandem::tests
