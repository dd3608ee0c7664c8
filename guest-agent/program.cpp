// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::agent {
namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> create_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail_errno("pipe2");
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<UniqueFd> non_blocking(UniqueFd fd) {
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail_errno("fcntl");
  }
  return fd;
}

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

Result<void> check(const ExecRequest& request) {
  if (request.arguments.empty() || request.arguments[0].empty()) {
    return fail(Errc::kInvalidArgument, "no program is named");
  }
  if (std::ranges::any_of(request.arguments, has_nul) || std::ranges::any_of(request.environment, has_nul) ||
      has_nul(request.directory.value_or(""))) {
    return fail(Errc::kInvalidArgument, "a NUL in an argument, a variable or the folder");
  }
  for (const std::string& variable : request.environment) {
    if (variable.find('=') == std::string::npos || variable[0] == '=') {
      return fail(Errc::kInvalidArgument, "'{}' is no NAME=VALUE", variable);
    }
  }
  return {};
}

/// The requested variables, and those of our own that they do not replace.
std::vector<std::string> environment_of(const ExecRequest& request) {
  std::vector<std::string> variables = request.environment;
  for (char** own = environ; *own != nullptr; ++own) {
    const std::string_view variable = *own;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(request.environment, [&](const std::string& other) { return other.starts_with(name); })) {
      variables.emplace_back(variable);
    }
  }
  return variables;
}

/// `texts` as exec(3) wants them; valid as long as they are.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// How a program is to be started: in a session of its own, with signals as they are by default.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  void connect(const UniqueFd& from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from.get(), to); }
  void change_directory(const UniqueFd& directory) {
    ::posix_spawn_file_actions_addfchdir_np(&actions_, directory.get());
  }

  /// @return 0, or why it does not start.
  int spawn(pid_t& pid, std::vector<std::string> arguments, std::vector<std::string> variables) {
    const std::vector<char*> argument_pointers = pointers_to(arguments);
    const std::vector<char*> variable_pointers = pointers_to(variables);
    return ::posix_spawnp(&pid, arguments[0].c_str(), &actions_, &attributes_, argument_pointers.data(),
                          variable_pointers.data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<Program> Program::start(const ExecRequest& request) {
  TANDEM_TRY(check(request));
  Pipe input = TANDEM_TRY(create_pipe());
  Pipe output = TANDEM_TRY(create_pipe());
  Pipe error_output = TANDEM_TRY(create_pipe());
  Program program;
  program.input_ = TANDEM_TRY(non_blocking(std::move(input.write_end)));
  program.output_ = TANDEM_TRY(non_blocking(std::move(output.read_end)));
  program.error_output_ = TANDEM_TRY(non_blocking(std::move(error_output.read_end)));
  TANDEM_TRY(program.spawn(request, input.read_end, output.write_end, error_output.write_end));
  program.pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, program.pid_, 0)));
  if (!program.pidfd_) {
    return fail_errno("pidfd_open");
  }
  return program;
}

Result<void> Program::spawn(const ExecRequest& request, const UniqueFd& input, const UniqueFd& output,
                            const UniqueFd& error_output) {
  SpawnSetup setup;
  UniqueFd directory;
  if (request.directory) {
    directory.reset(::open(request.directory->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) {
      return fail_errno("{}", *request.directory);
    }
    setup.change_directory(directory);
  }
  setup.connect(input, STDIN_FILENO);
  setup.connect(output, STDOUT_FILENO);
  setup.connect(error_output, STDERR_FILENO);
  if (const int os_error = setup.spawn(pid_, request.arguments, environment_of(request)); os_error != 0) {
    pid_ = -1;
    return std::unexpected(Error::from_errno(request.arguments[0], os_error));
  }
  return {};
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      error_output_(std::move(other.error_output_)) {}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    reap();
  }
}

Result<void> Program::signal(uint32_t number) const {
  if (number == 0 || number > static_cast<uint32_t>(SIGRTMAX)) {
    return fail(Errc::kInvalidArgument, "no signal has the number {}", number);
  }
  if (pid_ > 0) {
    // Not reaped yet, so the number is nobody else's.
    ::kill(-pid_, static_cast<int>(number));
  }
  return {};
}

ExecEnded Program::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ExecEnded ended;
  if (WIFSIGNALED(status)) {
    ended.signal = static_cast<uint32_t>(WTERMSIG(status));
  } else {
    ended.status = static_cast<uint32_t>(WEXITSTATUS(status));
  }
  return ended;
}

}  // namespace tandem::agent
