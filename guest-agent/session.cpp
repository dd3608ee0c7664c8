// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/session.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <future>
#include <memory>

#include "guest-agent/file_transfer.hpp"
#include "guest-agent/guest_facts.hpp"
#include "guest-agent/program_session.hpp"
#include "guest-agent/protocol/messages.hpp"
#include "vmm/lib/thread/start_thread.hpp"

namespace tandem::agent {
namespace {

using std::chrono::nanoseconds;

/// Longest time for which file systems stay frozen.
constexpr nanoseconds kMaxFreeze = std::chrono::hours(1);
/// Longest time that a program is given; more is as good as none.
constexpr nanoseconds kMaxExec = std::chrono::hours(24 * 365);

/// Longest time that a forced shutdown waits for file systems.
constexpr nanoseconds kPowerLimit = std::chrono::seconds(10);

/// An error as `ErrorReply` names it.
std::string_view code_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
    case Errc::kCorrupt:
      return "bad-request";
    case Errc::kNotFound:
      return "not-found";
    case Errc::kExists:
      return "exists";
    case Errc::kPermission:
      return "permission";
    case Errc::kBusy:
      return "busy";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kOutOfRange:
    case Errc::kOutOfMemory:
    case Errc::kClosed:
    case Errc::kIo:
      return "failed";
  }
  TANDEM_UNREACHABLE("every code is listed");
}

nanoseconds bounded(uint64_t time_ns, nanoseconds most) {
  return nanoseconds(std::min(time_ns, static_cast<uint64_t>(most.count())));
}

/// Calls `body` on a thread of its own, and waits for its end, but no longer than `limit`.
void call_within(nanoseconds limit, std::function<void()> body) {
  const auto ended = std::make_shared<std::promise<void>>();
  auto thread = start_thread("power", [body = std::move(body), ended] {
    body();
    ended->set_value();
  });
  if (thread) {
    ended->get_future().wait_for(limit);
    thread->detach();
  }
}

}  // namespace

std::span<const Session::Request> Session::requests() {
  static constexpr std::array<Request, kCapabilities.size()> kRequests{{{PingRequest::kName, &Session::ping},
                                                                        {InfoRequest::kName, &Session::info},
                                                                        {ExecRequest::kName, &Session::exec},
                                                                        {PutRequest::kName, &Session::put},
                                                                        {GetRequest::kName, &Session::get},
                                                                        {FreezeRequest::kName, &Session::freeze},
                                                                        {ThawRequest::kName, &Session::thaw},
                                                                        {PowerRequest::kName, &Session::power},
                                                                        {PvStateRequest::kName, &Session::pv_state},
                                                                        {SetTimeRequest::kName, &Session::set_time},
                                                                        {ReseedRequest::kName, &Session::reseed},
                                                                        {AnnounceRequest::kName, &Session::announce},
                                                                        {EventsRequest::kName, &Session::events}}};
  static_assert(std::ranges::equal(kRequests, kCapabilities, {}, &Request::name));
  return kRequests;
}

void Session::run() {
  if (const auto greeted = shake_hands(); !greeted) {
    report(greeted.error());
    return;
  }
  while (true) {
    if (const auto served = serve_one(); !served && !report(served.error())) {
      return;
    }
  }
}

void Session::refuse() { static_cast<void>(channel_.send(ErrorReply{"busy", "the agent has too many clients"})); }

Result<void> Session::shake_hands() {
  TANDEM_TRY(channel_.send(
      AgentHello{.version = TANDEM_VERSION, .capabilities = {kCapabilities.begin(), kCapabilities.end()}}));
  const Message hello = TANDEM_TRY(channel_.receive_message());
  const auto client = TANDEM_TRY(hello.as<ClientHello>());
  if (client.protocol < kOldestProtocol || client.protocol > kNewestProtocol) {
    return fail(Errc::kUnsupported, "protocol {} is not spoken here", client.protocol);
  }
  return {};
}

/// Tells the client of an error. @return whether the connection can go on.
bool Session::report(const Error& error) {
  const bool is_over = channel_.is_broken();
  if (is_over && error.code() != Errc::kCorrupt) {
    return false;
  }
  const std::string_view code = is_over ? "frame" : code_of(error.code());
  // It may quote the request, which may be as long as a message can be.
  return channel_.send(ErrorReply{std::string(code), error.message().substr(0, kMaxErrorBytes)}) && !is_over;
}

Result<void> Session::serve_one() {
  const Message request = TANDEM_TRY(next_request());
  const auto known = std::ranges::find(requests(), request.name(), &Request::name);
  if (known == requests().end()) {
    return channel_.send(ErrorReply{"unknown", fmt::format("no such request: {}", request.name())});
  }
  return (this->*known->handler)(request);
}

/// The next request. What was under way for a stream that has ended is passed over.
Result<Message> Session::next_request() {
  while (true) {
    Frame frame = TANDEM_TRY(channel_.receive());
    if (frame.kind == FrameKind::kInput) {
      continue;
    }
    Message message = TANDEM_TRY(message_in(std::move(frame)));
    if (!message.is<ExecSignal>()) {
      return message;
    }
  }
}

Result<void> Session::ping(const Message& request) {
  TANDEM_TRY(request.as<PingRequest>());
  return channel_.send(PingReply{.uptime_ns = uptime_ns()});
}

Result<void> Session::info(const Message& request) {
  TANDEM_TRY(request.as<InfoRequest>());
  InfoReply reply = TANDEM_TRY(describe_guest(context_.guest));
  reply.agent_version = TANDEM_VERSION;
  reply.agent_ready_ns = context_.agent_ready_ns;
  return channel_.send(reply);
}

Result<void> Session::exec(const Message& request) {
  const auto wanted = TANDEM_TRY(request.as<ExecRequest>());
  TANDEM_TRY(context_.freezer.refuse_if_frozen());
  Program program = TANDEM_TRY(Program::start(wanted));
  const Deadline deadline = wanted.timeout_ns ? Deadline(bounded(*wanted.timeout_ns, kMaxExec)) : Deadline();
  return ProgramSession(channel_, std::move(program), deadline).run();
}

Result<void> Session::put(const Message& request) {
  const auto wanted = TANDEM_TRY(request.as<PutRequest>());
  TANDEM_TRY(context_.freezer.refuse_if_frozen());
  return receive_file(channel_, wanted);
}

Result<void> Session::get(const Message& request) { return send_file(channel_, TANDEM_TRY(request.as<GetRequest>())); }

Result<void> Session::freeze(const Message& request) {
  const auto wanted = TANDEM_TRY(request.as<FreezeRequest>());
  const Deadline deadline(bounded(wanted.timeout_ns, kMaxFreeze));
  const auto lease = TANDEM_TRY(context_.freezer.begin());
  const auto held = hold_freeze(*lease, deadline);
  context_.freezer.thaw(lease);
  return channel_.send(ThawReply{.timed_out = TANDEM_TRY(held)});
}

/// Waits until the file systems are frozen, or could not be.
/// @errors  Errc::kIo: its time is over; Errc::kClosed: the client has gone.
Result<void> Session::await_settled(const Freezer::Lease& lease, const Deadline& deadline) {
  // What the client sends meanwhile waits.
  std::array<pollfd, 2> entries{{{channel_.fd(), POLLRDHUP, 0}, {lease.settled.get(), POLLIN, 0}}};
  while (entries[1].revents == 0) {
    if (deadline.has_passed()) {
      return fail(Errc::kIo, "file systems did not freeze in time");
    }
    if (::poll(entries.data(), entries.size(), deadline.poll_timeout_ms()) < 0 && errno != EINTR) {
      return fail_errno("poll");
    }
    if (entries[0].revents != 0) {
      return fail(Errc::kClosed, "the client has gone");
    }
  }
  return {};
}

/// Waits for the end of a freeze. @return whether its time is over, rather than somebody having thawed.
Result<bool> Session::hold_freeze(const Freezer::Lease& lease, const Deadline& deadline) {
  TANDEM_TRY(await_settled(lease, deadline));
  TANDEM_TRY(channel_.send(FreezeReply{.mount_points = TANDEM_TRY(context_.freezer.outcome(lease))}, deadline));
  while (true) {
    if (const auto frame = TANDEM_TRY(channel_.next())) {
      TANDEM_TRY(TANDEM_TRY(message_in(*frame)).as<ThawRequest>());
      return false;
    }
    if (deadline.has_passed()) {
      return true;
    }
    std::array<pollfd, 2> entries{{{channel_.fd(), POLLIN, 0}, {lease.ended.get(), POLLIN, 0}}};
    if (::poll(entries.data(), entries.size(), deadline.poll_timeout_ms()) < 0 && errno != EINTR) {
      return fail_errno("poll");
    }
    if (entries[1].revents != 0) {
      return false;
    }
    if (entries[0].revents != 0) {
      TANDEM_TRY(channel_.fill());
    }
  }
}

Result<void> Session::thaw(const Message& request) {
  TANDEM_TRY(request.as<ThawRequest>());
  TANDEM_TRY(context_.freezer.thaw());
  return channel_.send(ThawReply{});
}

Result<void> Session::power(const Message& request) {
  const auto wanted = TANDEM_TRY(request.as<PowerRequest>());
  if (!context_.guest.is_forced(wanted)) {
    if (auto thawed = context_.freezer.thaw(); !thawed && thawed.error().code() == Errc::kBusy) {
      return thawed;
    }
    TANDEM_TRY(context_.guest.power(wanted));
    return channel_.send(Done{});
  }
  TANDEM_TRY(channel_.send(Done{}));
  // The answer is on its way only once the client has it, who then goes.
  static_cast<void>(channel_.receive(Deadline(std::chrono::seconds(1))));
  // A disk that hangs does not keep the guest from going down.
  call_within(kPowerLimit, [&context = context_] {
    static_cast<void>(context.freezer.thaw());
    context.guest.sync();
  });
  return context_.guest.power(wanted);
}

Result<void> Session::pv_state(const Message& request) {
  TANDEM_TRY(request.as<PvStateRequest>());
  return channel_.send(TANDEM_TRY(describe_vcpus(context_.root)));
}

Result<void> Session::set_time(const Message& request) {
  const auto wanted = TANDEM_TRY(request.as<SetTimeRequest>());
  return channel_.send(SetTimeReply{.step_ns = TANDEM_TRY(context_.guest.set_realtime(wanted.realtime_ns))});
}

Result<void> Session::reseed(const Message& request) {
  const auto wanted = TANDEM_TRY(request.as<ReseedRequest>());
  if (wanted.seed.size() < kMinSeedBytes || wanted.seed.size() > kMaxSeedBytes) {
    return fail(Errc::kInvalidArgument, "a seed has {} to {} bytes", kMinSeedBytes, kMaxSeedBytes);
  }
  TANDEM_TRY(context_.guest.reseed(std::as_bytes(std::span(wanted.seed))));
  return channel_.send(Done{});
}

Result<void> Session::announce(const Message& request) {
  TANDEM_TRY(request.as<AnnounceRequest>());
  return channel_.send(AnnounceReply{.addresses = TANDEM_TRY(context_.guest.announce())});
}

Result<void> Session::events(const Message& request) {
  TANDEM_TRY(request.as<EventsRequest>());
  return send_events(channel_, context_.events);
}

}  // namespace tandem::agent
