// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/control_server.hpp"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "vmm/control/line_channel.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::control {
namespace {

using std::chrono::steady_clock;

/// How long clients wait after one could not be accepted for want of descriptors.
constexpr time_t kAcceptRetryS = 1;
/// Most requests of one client before others have their turn.
constexpr unsigned kRequestsPerTurn = 16;
/// Least time between two lines of a job's progress.
constexpr std::chrono::milliseconds kProgressInterval{100};
/// How long the last replies may take to be read.
constexpr std::chrono::milliseconds kLastWords{1000};

}  // namespace

struct ControlServer::Client {
  Client(uint64_t client_key, UniqueFd socket) : key(client_key), channel(std::move(socket), kMaxRequestBytes) {}

  const uint64_t key;
  LineChannel channel;
  EventLoop::Watch watch;
  uint64_t last_activity = 0;
  bool input_ended = false;
  bool is_last_reply = false;         // what is queued is the end
  std::optional<Job::WhenAlone> job;  // it waits for a job that it started
  std::string job_command;
  steady_clock::time_point progress_at;
  std::optional<TakeOver> take_over;
};

ControlServer::ControlServer(EventLoop& loop, devices::ListeningSocket socket, JobRunner& jobs,
                             std::vector<ControlCommand> commands)
    : loop_(loop), socket_(std::move(socket)), jobs_(jobs), commands_(std::move(commands)) {}

ControlServer::~ControlServer() { finish(); }

Result<std::unique_ptr<ControlServer>> ControlServer::create(EventLoop& loop, devices::ListeningSocket socket,
                                                             JobRunner& jobs, std::vector<ControlCommand> commands) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, std::move(socket), jobs, std::move(commands)));
  ControlServer* const self = server.get();
  self->accept_timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!self->accept_timer_) {
    return fail_errno("timerfd_create");
  }
  self->accept_timer_watch_ = TANDEM_TRY(loop.watch(self->accept_timer_.get(), Events::kReadable, [self](Events) {
    drain_eventfd(self->accept_timer_.get());  // a timer's descriptor is read as an eventfd's
    self->socket_watch_.set_events(Events::kReadable);
  }));
  self->socket_watch_ =
      TANDEM_TRY(loop.watch(self->socket_.fd(), Events::kReadable, [self](Events) { self->accept_client(); }));
  return server;
}

// Clients come and go

void ControlServer::accept_client() {
  auto socket = socket_.accept();
  if (!socket) {
    log::warn("control: {}", socket.error().message());
    return pause_accepting();
  }
  if (!*socket) {
    return;
  }
  make_room();
  if (const auto added = add_client(std::move(*socket)); !added) {
    log::warn("control: {}", added.error().message());
  }
}

void ControlServer::pause_accepting() {
  itimerspec when{};
  when.it_value.tv_sec = kAcceptRetryS;
  ::timerfd_settime(accept_timer_.get(), 0, &when, nullptr);
  socket_watch_.set_events(Events::kNone);
}

Result<void> ControlServer::add_client(UniqueFd socket) {
  auto client = std::make_unique<Client>(next_key_++, std::move(socket));
  client->last_activity = ++activity_;
  client->watch = TANDEM_TRY(
      loop_.watch(client->channel.fd(), Events::kReadable, [this, it = client.get()](Events) { serve(*it); }));
  clients_.emplace(client->key, std::move(client));
  return {};
}

void ControlServer::make_room() {
  if (clients_.size() < kMaxClients) {
    return;
  }
  // There is one job at most, and so a client that waits for none.
  const auto longest = std::ranges::min_element(clients_, {}, [](const auto& entry) {
    return std::pair(entry.second->job.has_value(), entry.second->last_activity);
  });
  Client& client = *longest->second;
  client.channel.queue(
      error_line(std::nullopt, Error(Errc::kBusy, "too many clients: the one silent longest has to go")));
  [[maybe_unused]] const auto last_try = client.channel.flush();
  remove(client);
}

void ControlServer::remove(Client& client) {
  if (client.job == Job::WhenAlone::kIsCancelled) {
    [[maybe_unused]] const auto it_may_have_ended = jobs_.cancel(client.job_command);
  }
  clients_.erase(client.key);
}

// One client

void ControlServer::serve(Client& client) {
  if (!work_on(client)) {
    return remove(client);
  }
  const bool writes = client.channel.queued_bytes() != 0;
  if (!writes && client.take_over) {
    return hand_over(client, *client.take_over);
  }
  const bool is_served = client.input_ended && !client.job && !client.channel.has_line();
  if (!writes && (is_served || client.is_last_reply)) {
    return remove(client);
  }
  if (!writes && client.channel.has_line()) {
    loop_.post([this, key = client.key] { serve_again(key); });  // others have their turn first
  }
  const bool reads = may_read(client) && !client.channel.has_line();
  client.watch.set_events(reads ? (writes ? Events::kBoth : Events::kReadable)
                                : (writes ? Events::kWritable : Events::kNone));
}

void ControlServer::serve_again(uint64_t client_key) {
  if (const auto it = clients_.find(client_key); it != clients_.end()) {
    serve(*it->second);
  }
}

void ControlServer::hand_over(Client& client, TakeOver take_over) {
  client.watch = {};
  UniqueFd socket = std::move(client.channel).take();
  remove(client);
  take_over.take(std::move(socket));
}

/// @return false: the client has to go.
bool ControlServer::work_on(Client& client) {
  if (!client.channel.flush()) {
    return false;
  }
  if (!client.channel.has_line() && may_read(client)) {
    const auto more = client.channel.fill();
    if (!more) {
      return false;
    }
    client.input_ended = !*more;
    if (client.input_ended && client.channel.is_hung_up()) {
      return false;
    }
  }
  answer_requests(client);
  return client.channel.flush().has_value();
}

bool ControlServer::may_read(const Client& client) {
  return !client.input_ended && !client.is_last_reply && !client.take_over &&
         client.channel.queued_bytes() < kMaxQueuedBytes;
}

void ControlServer::answer_requests(Client& client) {
  for (unsigned count = 0; count < kRequestsPerTurn; ++count) {
    if (client.is_last_reply || client.take_over || client.channel.queued_bytes() >= kMaxQueuedBytes) {
      return;
    }
    const auto next = client.channel.next();
    if (!next) {
      client.channel.queue(error_line(std::nullopt, next.error()));
      client.is_last_reply = true;
      return;
    }
    const std::optional<std::string>& line = *next;
    if (!line) {
      return;
    }
    client.last_activity = ++activity_;
    handle(client, *line);
  }
}

void ControlServer::handle(Client& client, const std::string& line) {
  const auto request = parse_request(line);
  if (!request) {
    return client.channel.queue(error_line(request.error().id, request.error().error));
  }
  if (const auto started = start(client, *request); !started) {
    client.channel.queue(error_line(request->id, started.error()));
  }
}

Result<void> ControlServer::start(Client& client, const ControlRequest& request) {
  const auto command = std::ranges::find(commands_, request.command, &ControlCommand::name);
  if (command == commands_.end()) {
    return fail(Errc::kUnsupported, "no such command");
  }
  CommandOutcome outcome = TANDEM_TRY(command->start(request.arguments));
  if (auto* const job = std::get_if<Job>(&outcome)) {
    return start_job(client, request, std::move(*job));
  }
  if (auto* const take_over = std::get_if<TakeOver>(&outcome)) {
    if (client.job) {
      return fail(Errc::kBusy, "this connection waits for {}", client.job_command);
    }
    client.take_over = std::move(*take_over);
    client.channel.queue(result_line(request.id, Json::object()));
    return {};
  }
  client.channel.queue(result_line(request.id, std::get<Json>(outcome)));
  return {};
}

// Jobs

Result<void> ControlServer::start_job(Client& client, const ControlRequest& request, Job job) {
  const Job::WhenAlone when_alone = job.when_alone;
  const std::string command = job.command;
  const uint64_t key = client.key;
  TANDEM_TRY(jobs_.start(
      std::move(job),
      {.on_progress = [this, key, id = request.id](const JobProgress& progress) { on_job_progress(key, id, progress); },
       .on_end = [this, key, id = request.id](Result<Json> result) { on_job_end(key, id, std::move(result)); }}));
  client.job = when_alone;
  client.job_command = command;
  return {};
}

void ControlServer::on_job_progress(uint64_t client_key, std::optional<uint64_t> id, const JobProgress& progress) {
  const auto it = clients_.find(client_key);
  if (it == clients_.end()) {
    return;
  }
  Client& client = *it->second;
  const auto now = steady_clock::now();
  // Whoever does not read, or has read just now, does not need it.
  if (client.channel.queued_bytes() != 0 || now - client.progress_at < kProgressInterval) {
    return;
  }
  client.progress_at = now;
  client.channel.queue(progress_line(id, progress));
  serve(client);
}

void ControlServer::on_job_end(uint64_t client_key, std::optional<uint64_t> id, Result<Json> result) {
  const auto it = clients_.find(client_key);
  if (it == clients_.end()) {
    return;
  }
  Client& client = *it->second;
  client.job.reset();
  client.channel.queue(result ? result_line(id, *result) : error_line(id, result.error()));
  serve(client);
}

// The end

void ControlServer::finish() {
  jobs_.finish();
  const auto end = steady_clock::now() + kLastWords;
  for (const auto& [key, client] : clients_) {
    LineChannel& channel = client->channel;
    while (channel.flush() && channel.queued_bytes() != 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - steady_clock::now());
      pollfd entry{.fd = channel.fd(), .events = POLLOUT, .revents = 0};
      if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) {
        break;
      }
    }
  }
  clients_.clear();
}

}  // namespace tandem::control
