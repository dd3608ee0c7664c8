// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/agent_command.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>

#include "vmm/cli/agent_report.hpp"
#include "vmm/cli/error_line.hpp"
#include "vmm/cli/exit_status.hpp"
#include "vmm/cli/vm_command.hpp"
#include "vmm/control/agent_client.hpp"
#include "vmm/control/agent_files.hpp"
#include "vmm/control/agent_program.hpp"

namespace tandem::cli {
namespace {

using control::AgentClient;
using control::FileStream;

/// What `exec` ends with where the program has no status to pass on, as env(1) and timeout(1) do.
enum ExecStatus : int {
  kExecTimedOut = 124,
  kExecFailed = 125,
  kExecNotExecutable = 126,
  kExecNotFound = 127,
  kExecSignalled = 128,  ///< Plus the signal's number.
};

/// What `ping` tells.
struct PingReport {
  uint64_t round_trip_ns = 0;
  uint64_t uptime_ns = 0;
  template <class A>
  void fields(A& a) {
    a("round_trip_ns", round_trip_ns);
    a("uptime_ns", uptime_ns);
  }
};

/// Signals that end a command, held back so that it can end in order; readable while one is there.
class EndingSignals {
 public:
  EndingSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      ::sigaddset(&signals, number);
    }
    ::sigprocmask(SIG_BLOCK, &signals, &before_);
    fd_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;
  ~EndingSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Takes one, if it is there.
  [[nodiscard]] bool take() const {
    signalfd_siginfo signal{};
    return ::read(fd(), &signal, sizeof signal) == sizeof signal;
  }

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

/// A file of the host that takes its name once all of it is there. `-` is standard output, which has its name.
class LocalFile {
 public:
  static Result<LocalFile> create(const std::string& path) {
    if (path == "-") {
      return LocalFile("", "", UniqueFd());
    }
    std::string name = path + ".tandem-XXXXXX";
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      return fail(Errc::kInvalidArgument, "{}: not a regular file", path);
    }
    UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
    if (!file) {
      return fail_errno("{}", path);
    }
    return LocalFile(path, std::move(name), std::move(file));
  }
  LocalFile(LocalFile&&) noexcept = default;
  LocalFile& operator=(LocalFile&&) = delete;
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() {
    if (file_) {
      ::unlink(name_.c_str());
    }
  }

  [[nodiscard]] int fd() const { return file_ ? file_.get() : STDOUT_FILENO; }

  Result<void> commit(uint32_t mode) {
    constexpr uint32_t kPermissions = 0777;  // not what lets a file run as somebody else
    const mode_t mask = ::umask(0);          // there is no other way to ask for it
    ::umask(mask);
    if (file_ && (::fchmod(fd(), mode & kPermissions & ~mask) != 0 || ::rename(name_.c_str(), path_.c_str()) != 0)) {
      return fail_errno("{}", path_);
    }
    file_.reset();
    return {};
  }

 private:
  LocalFile(std::string path, std::string name, UniqueFd file)
      : path_(std::move(path)), name_(std::move(name)), file_(std::move(file)) {}
  std::string path_;
  std::string name_;
  UniqueFd file_;
};

/// Does one request; an overload of `perform` for each kind, which returns the exit status.
class AgentCommand {
 public:
  AgentCommand(const AgentRequest& request, AgentClient& client, const EndingSignals& signals)
      : request_(request), client_(client), signals_(signals) {
    client_.channel().give_up_on(signals_.fd());
  }

  Result<int> perform(const agent::PingRequest& ping) {
    const auto start = std::chrono::steady_clock::now();
    const auto pong = TANDEM_TRY(client_.ask<agent::PingReply>(ping));
    const std::chrono::nanoseconds round_trip = std::chrono::steady_clock::now() - start;
    return show(PingReport{static_cast<uint64_t>(round_trip.count()), pong.uptime_ns});
  }
  Result<int> perform(const agent::InfoRequest& info) { return ask_and_show<agent::InfoReply>(info); }
  Result<int> perform(const agent::PvStateRequest& pv_state) { return ask_and_show<agent::PvStateReply>(pv_state); }
  Result<int> perform(const agent::ThawRequest& thaw) { return ask_and_show<agent::ThawReply>(thaw); }
  Result<int> perform(const agent::AnnounceRequest& announce) { return ask_and_show<agent::AnnounceReply>(announce); }

  Result<int> perform(const agent::ExecRequest& exec) {
    client_.channel().give_up_on(-1);  // the program gets the signal
    control::AgentProgram program(client_, {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, signals_.fd()});
    const auto followed = program.run(exec);
    if (!followed && (followed.error().code() == Errc::kNotFound || followed.error().code() == Errc::kPermission)) {
      print_error_line("agent: exec: " + followed.error().message());
      return followed.error().code() == Errc::kNotFound ? kExecNotFound : kExecNotExecutable;
    }
    const agent::ExecEnded ended = TANDEM_TRY(followed);
    if (ended.timed_out) {
      print_error_line("agent: exec: killed after the time-out");
      return kExecTimedOut;
    }
    return static_cast<int>(ended.signal ? kExecSignalled + *ended.signal : ended.status.value_or(kExecFailed));
  }

  Result<int> perform(const PutFile& put) {
    UniqueFd file;
    if (put.local != "-") {
      file.reset(::open(put.local.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file) {
        return fail_errno("{}", put.local);
      }
    }
    const FileStream from{file ? file.get() : STDIN_FILENO, signals_.fd()};
    return done(TANDEM_TRY(control::put_file(client_, put.request, from)));
  }

  Result<int> perform(const GetFile& get) {
    LocalFile file = TANDEM_TRY(LocalFile::create(get.local));
    const auto reply = TANDEM_TRY(control::get_file(client_, get.request, {file.fd(), signals_.fd()}));
    TANDEM_TRY(file.commit(reply.mode));
    return kExitSuccess;
  }

  Result<int> perform(const agent::FreezeRequest& freeze) {
    // Without a limit: what is dirty is written first.
    TANDEM_TRY(show(TANDEM_TRY(client_.ask<agent::FreezeReply>(freeze, agent::Deadline()))));
    auto thawed = client_.reply<agent::ThawReply>(agent::Deadline());
    if (!thawed && signals_.take()) {
      client_.channel().give_up_on(-1);
      thawed = client_.ask<agent::ThawReply>(agent::ThawRequest{});
    }
    if (TANDEM_TRY(thawed).timed_out) {
      return fail(Errc::kIo, "thawed by itself, because the time was over");
    }
    return kExitSuccess;
  }

  Result<int> perform(const agent::PowerRequest& power) {
    const auto reply = client_.ask<agent::Done>(power);
    // The guest may be gone before its answer is.
    if (!reply && !(client_.channel().is_broken() && reply.error().code() == Errc::kClosed)) {
      return std::unexpected(reply.error());
    }
    return kExitSuccess;
  }

  Result<int> perform(const SetClock& clock) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto host_ns = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
    return ask_and_show<agent::SetTimeReply>(agent::SetTimeRequest{.realtime_ns = clock.realtime_ns.value_or(host_ns)});
  }

  Result<int> perform(const Reseed& /*reseed*/) {
    constexpr size_t kSeedBytes = 64;
    agent::ReseedRequest request{.seed = std::string(kSeedBytes, '\0')};
    if (::getrandom(request.seed.data(), kSeedBytes, 0) != static_cast<ssize_t>(kSeedBytes)) {
      return fail_errno("getrandom");
    }
    return done(TANDEM_TRY(client_.ask<agent::Done>(request)));
  }

  Result<int> perform(const agent::EventsRequest& events) {
    TANDEM_TRY(client_.ask<agent::Done>(events));
    while (true) {
      auto event = client_.reply<agent::Event>(agent::Deadline());
      if (!event && signals_.take()) {
        return kExitSuccess;
      }
      const nlohmann::ordered_json report = report_of(TANDEM_TRY(std::move(event)));
      TANDEM_TRY(print(request_.json ? as_json(report) + '\n' : as_text(report) + '\n'));
    }
  }

 private:
  Result<void> print(const std::string& text) {
    return with_context(control::write_all({STDOUT_FILENO, signals_.fd()}, std::as_bytes(std::span(text))),
                        "standard output");
  }
  template <typename T>
  Result<int> show(const T& message) {
    const nlohmann::ordered_json report = report_of(message);
    TANDEM_TRY(print(request_.json ? as_json(report) + '\n' : as_text(report)));
    return kExitSuccess;
  }
  template <typename Reply, typename Request>
  Result<int> ask_and_show(const Request& request) {
    return show(TANDEM_TRY(client_.ask<Reply>(request)));
  }
  /// What has nothing to tell tells it in JSON only.
  template <typename T>
  Result<int> done(const T& message) {
    return request_.json ? show(message) : Result<int>(kExitSuccess);
  }

  const AgentRequest& request_;
  AgentClient& client_;
  const EndingSignals& signals_;
};

Result<int> connect_and_perform(const AgentRequest& request) {
  const std::string path = request.vm_name.empty()
                               ? request.vsock_path
                               : TANDEM_TRY(with_context(find_vsock(request.vm_name), request.vm_name));
  AgentClient client = TANDEM_TRY(AgentClient::connect(path, request.patience));
  const EndingSignals signals;
  AgentCommand command(request, client, signals);
  return std::visit([&](const auto& what) { return with_context(command.perform(what), request.function); },
                    request.what);
}

}  // namespace

int run(const AgentRequest& request) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto status = connect_and_perform(request);
  if (!status) {
    print_error_line("agent: " + status.error().message());
    return std::holds_alternative<agent::ExecRequest>(request.what) ? kExecFailed : int{kExitFailure};
  }
  return *status;
}

}  // namespace tandem::cli
