// SPDX-License-Identifier: Apache-2.0
// Last act of the testbed's init, still process 1 of the emulated machine: takes a session (mounts,
// environment, command) from the port that leads to testbed.d/streams.py, runs the command, and
// carries its streams and exit status as frames. Frame: type (1 byte), length (u32, little-endian), bytes.

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

// From the testbed: what to set up, then kStart; kInput any time after it, empty at end of file.
enum FrameType : char {
  kMount = 'M',        // tag, "rw" or "ro", path; separated by NUL
  kLink = 'L',         // target, path
  kEnvironment = 'V',  // NAME=VALUE
  kDirectory = 'D',    // path
  kArgument = 'A',     // one argument of the command
  kTerminal = 'T',     // rows (u16), columns (u16): before kStart asks for a terminal, after it resizes
  kStart = 'G',
  kInput = 'I',
  // To the testbed.
  kOutput = 'O',
  kError = 'E',
  kExit = 'X',  // exit status (1 byte)
};

constexpr size_t kChunk = 32768;

[[noreturn]] void give_up(const char* what) {
  std::printf("run_command: %s: %s\n", what, std::strerror(errno));
  std::fflush(stdout);
  reboot(RB_POWER_OFF);
  _exit(1);
}

void write_all(int fd, const char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t n = write(fd, bytes, length);
    if (n < 0 && errno != EINTR) give_up("write to the testbed");
    if (n > 0) {
      bytes += n;
      length -= static_cast<size_t>(n);
    }
  }
}

void send(int port, FrameType type, std::string_view bytes) {
  std::string frame(1, type);
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(bytes.size() >> shift);
  frame += bytes;
  write_all(port, frame.data(), frame.size());
}

std::vector<std::string> split(const std::string& bytes) {
  std::vector<std::string> parts(1);
  for (char c : bytes) {
    if (c == '\0')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

void make_directories(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    mkdir(path.substr(0, end).c_str(), 0755);
  mkdir(path.c_str(), 0755);
}

void mount_share(const std::string& body) {
  const auto parts = split(body);
  if (parts.size() != 3) return;
  make_directories(parts[2]);
  const unsigned long flags = parts[1] == "ro" ? MS_RDONLY : 0;
  if (mount(parts[0].c_str(), parts[2].c_str(), "9p", flags,
            "trans=virtio,version=9p2000.L,msize=512000,cache=readahead") != 0)
    give_up(("mount " + parts[2]).c_str());
}

void make_link(const std::string& body) {
  const auto parts = split(body);
  if (parts.size() != 2) return;
  make_directories(parts[1].substr(0, parts[1].rfind('/')));
  if (symlink(parts[0].c_str(), parts[1].c_str()) != 0) std::printf("run_command: cannot link %s\n", parts[1].c_str());
}

/// What the testbed asked for before kStart.
struct Command {
  std::string directory = "/";
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  bool wants_terminal = false;
  winsize window = {};
};

/// The command's streams, seen from this side; -1 once closed. With a terminal, input and output are one file.
struct Streams {
  int input = -1, output = -1, error = -1;
};

[[noreturn]] void become(const Command& command, const int fds[3]) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  setsid();
  if (command.wants_terminal) ioctl(fds[0], TIOCSCTTY, 0);
  for (int i = 0; i < 3; ++i) dup2(fds[i], i);
  clearenv();
  for (const auto& variable : command.environment) putenv(strdup(variable.c_str()));
  std::vector<char*> argv;
  for (const auto& argument : command.arguments) argv.push_back(strdup(argument.c_str()));
  argv.push_back(nullptr);
  const char* what = command.directory.c_str();
  if (chdir(what) == 0) {
    what = argv[0];
    execvp(argv[0], argv.data());
  }
  const int error = errno;
  dprintf(2, "testbed: %s: %s\n", what, std::strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

void open_terminal(const Command& command, Streams& ours, int theirs[3]) {
  ours.input = ours.output = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours.input < 0 || unlockpt(ours.input) != 0) give_up("open a terminal");
  ioctl(ours.input, TIOCSWINSZ, &command.window);
  const int slave = open(ptsname(ours.input), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) give_up("open a terminal");
  for (int i = 0; i < 3; ++i) theirs[i] = slave;
}

void open_pipes(Streams& ours, int theirs[3]) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) give_up("pipe");
  ours = {in[1], out[0], err[0]};
  theirs[0] = in[0];
  theirs[1] = out[1];
  theirs[2] = err[1];
}

pid_t start(const Command& command, Streams& ours) {
  int theirs[3];
  if (command.wants_terminal)
    open_terminal(command, ours, theirs);
  else
    open_pipes(ours, theirs);
  const pid_t pid = fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) become(command, theirs);
  close(theirs[0]);
  if (!command.wants_terminal) {
    close(theirs[1]);
    close(theirs[2]);
  }
  for (int fd : {ours.input, ours.output, ours.error})
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  return pid;
}

class Session {
 public:
  explicit Session(int port) : port_(port) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);
    signal(SIGPIPE, SIG_IGN);
    children_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  [[noreturn]] void run() {
    send(port_, kStart, {});
    while (!ended_) turn();
    drain();
    sync();
    send(port_, kExit, std::string_view(&status_, 1));
    for (;;) pause();  // the testbed switches the machine off
  }

 private:
  // One round of waiting. The port is not read while input waits for the command: that is the back-pressure.
  void turn() {
    const bool input_waits = !input_.empty();
    pollfd fds[] = {
        {input_waits ? -1 : port_, POLLIN, 0},
        {input_waits ? streams_.input : -1, POLLOUT, 0},
        {streams_.output, POLLIN, 0},
        {streams_.error, POLLIN, 0},
        {children_, POLLIN, 0},
    };
    if (poll(fds, 5, -1) < 0 && errno != EINTR) give_up("poll");
    if (fds[0].revents != 0) read_port();
    if (fds[1].revents != 0) feed_input();
    if (fds[2].revents != 0) pass(streams_.output, kOutput);
    if (fds[3].revents != 0) pass(streams_.error, kError);
    if (fds[4].revents != 0) reap();
  }

  void read_port() {
    char chunk[kChunk];
    const ssize_t n = read(port_, chunk, sizeof chunk);
    if (n == 0) give_up("the testbed went away");
    if (n < 0) return;
    received_.append(chunk, static_cast<size_t>(n));
    size_t at = 0;
    while (received_.size() - at >= 5) {
      uint32_t length = 0;
      for (size_t i = 0; i < 4; ++i) length |= uint32_t{static_cast<unsigned char>(received_[at + 1 + i])} << (8 * i);
      if (received_.size() - at - 5 < length) break;
      handle(received_[at], received_.substr(at + 5, length));
      at += 5 + length;
    }
    received_.erase(0, at);
  }

  void handle(char type, const std::string& body) {
    switch (type) {
      case kMount:
        mount_share(body);
        break;
      case kLink:
        make_link(body);
        break;
      case kEnvironment:
        command_.environment.push_back(body);
        break;
      case kDirectory:
        command_.directory = body;
        break;
      case kArgument:
        command_.arguments.push_back(body);
        break;
      case kTerminal:
        set_window(body);
        break;
      case kInput:
        take_input(body);
        break;
      case kStart:
        pid_ = start(command_, streams_);
        break;
      default:
        break;
    }
  }

  void set_window(const std::string& body) {
    if (body.size() != 4) return;
    std::memcpy(&command_.window, body.data(), 4);  // ws_row, ws_col
    command_.wants_terminal = true;
    if (streams_.output >= 0) ioctl(streams_.output, TIOCSWINSZ, &command_.window);
  }

  void take_input(const std::string& body) {
    if (!body.empty())
      input_ += body;
    else
      input_ended_ = true;
    feed_input();
  }

  void feed_input() {
    if (streams_.input >= 0 && !input_.empty()) {
      const ssize_t n = write(streams_.input, input_.data(), input_.size());
      if (n > 0)
        input_.erase(0, static_cast<size_t>(n));
      else if (n < 0 && errno != EAGAIN && errno != EINTR)
        close_input();
    }
    if (streams_.input < 0)
      input_.clear();
    else if (input_.empty() && input_ended_)
      close_input();
  }

  void close_input() {
    if (!command_.wants_terminal) close(streams_.input);
    streams_.input = -1;
  }

  bool pass(int& fd, FrameType type) {
    char chunk[kChunk];
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n > 0) {
      send(port_, type, std::string_view(chunk, static_cast<size_t>(n)));
      return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    close(fd);
    fd = -1;
    return false;
  }

  void reap() {
    signalfd_siginfo info;
    while (read(children_, &info, sizeof info) > 0) continue;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != pid_) continue;
      status_ = static_cast<char>(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
      ended_ = true;
    }
  }

  // What the command wrote before it ended is in the pipes; a terminal may still be passing it on.
  void drain() {
    const int patience_ms = command_.wants_terminal ? 200 : 0;
    for (pollfd out = {streams_.output, POLLIN, 0}; out.fd >= 0 && poll(&out, 1, patience_ms) > 0;
         out.fd = streams_.output)
      pass(streams_.output, kOutput);
    while (streams_.error >= 0 && pass(streams_.error, kError)) continue;
  }

  int port_;
  int children_ = -1;
  pid_t pid_ = -1;
  char status_ = 0;
  bool ended_ = false;
  bool input_ended_ = false;
  Command command_;
  Streams streams_;
  std::string received_;
  std::string input_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int port = open(argv[1], O_RDWR | O_CLOEXEC);
  if (port < 0) give_up(argv[1]);
  Session(port).run();
}
