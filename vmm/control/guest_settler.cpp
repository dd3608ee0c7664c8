// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/guest_settler.hpp"

#include <fmt/ranges.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <cmath>

#include "vmm/lib/log/log.hpp"
#include "vmm/lib/thread/start_thread.hpp"

namespace tandem::control {
namespace {

/// How long an agent may take before the guest has to do without.
constexpr std::chrono::seconds kPatience{30};
constexpr size_t kSeedBytes = 64;

}  // namespace

Result<std::unique_ptr<GuestSettler>> GuestSettler::create(Order order) {
  UniqueFd give_up(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!give_up) {
    return fail_errno("eventfd");
  }
  return std::unique_ptr<GuestSettler>(new GuestSettler(std::move(order), std::move(give_up)));
}

GuestSettler::GuestSettler(Order order, UniqueFd give_up)
    : order_(std::move(order)),
      give_up_(std::move(give_up)),
      steps_{{"clock", "set", &GuestSettler::step_clock},
             {"random pool", "reseeded", &GuestSettler::reseed},
             {"network", "announced", &GuestSettler::announce}} {}

GuestSettler::~GuestSettler() {
  if (thread_.joinable()) {
    ::eventfd_write(give_up_.get(), 1);
    thread_.join();
  }
}

void GuestSettler::start() {
  if (thread_.joinable()) {
    return;
  }
  if (auto thread = start_thread("settler", [this] { run(); })) {
    thread_ = *std::move(thread);
  } else {
    log::warn("the guest's agent is not asked to settle it: {}", thread.error().message());
  }
}

SettlingStatus GuestSettler::status() const {
  const std::scoped_lock lock(mutex_);
  SettlingStatus status{.ended = ended_};
  for (const Step& step : steps_) {
    status.steps.emplace_back(step.subject, step.outcome.value_or("not yet " + std::string(step.deed)));
  }
  return status;
}

void GuestSettler::run() {
  end_ = Deadline(kPatience);
  auto taken =
      order_.vsock_path.empty() ? fail(Errc::kNotFound, "the virtual machine has no vsock device") : take_steps();
  // Connections from before the guest was saved end as it wakes up, and one that comes just then may end with them.
  while (!taken && taken.error().code() == Errc::kClosed && !end_.has_passed()) {
    taken = take_steps();
  }
  for (Step& step : steps_) {
    if (!step.outcome) {
      note(step, std::unexpected(taken.error()));
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  if (taken) {
    tell();
  }
}

/// Says what was done. What the agent says of its own is not for the log.
void GuestSettler::tell() const {
  std::vector<std::string> deeds;
  for (const Step& step : steps_) {
    if (step.failed) {
      deeds.push_back(fmt::format("{} not {}", step.subject, step.deed));
    } else {
      deeds.push_back(fmt::format("{} {}", step.subject, *step.outcome));
    }
  }
  log::info("guest: {}", fmt::join(deeds, ", "));
}

Result<void> GuestSettler::take_steps() {
  auto client = TANDEM_TRY(AgentClient::connect(order_.vsock_path, kPatience, give_up_.get()));
  for (Step& step : steps_) {
    if (step.outcome) {
      continue;
    }
    const auto outcome = (this->*step.ask)(client);
    if (!outcome && client.channel().is_broken()) {
      return std::unexpected(outcome.error());
    }
    note(step, outcome);
  }
  return {};
}

void GuestSettler::note(Step& step, const Result<std::string>& outcome) {
  const std::scoped_lock lock(mutex_);
  step.failed = !outcome;
  step.outcome = outcome ? *outcome : fmt::format("not {}: {}", step.deed, outcome.error().message());
}

Result<std::string> GuestSettler::step_clock(AgentClient& client) {
  if (!order_.step_clock) {
    return "left as it was";
  }
  using std::chrono::nanoseconds, std::chrono::system_clock;
  const nanoseconds now = system_clock::now().time_since_epoch();
  const auto reply = TANDEM_TRY(
      client.ask<agent::SetTimeReply>(agent::SetTimeRequest{.realtime_ns = static_cast<uint64_t>(now.count())}, end_));
  const double seconds = std::chrono::duration<double>(nanoseconds(reply.step_ns)).count();
  return fmt::format("set {} by {:.3f} s", reply.step_ns < 0 ? "back" : "forward", std::abs(seconds));
}

Result<std::string> GuestSettler::reseed(AgentClient& client) {
  agent::ReseedRequest request{.seed = std::string(kSeedBytes, '\0')};
  if (::getrandom(request.seed.data(), request.seed.size(), 0) != static_cast<ssize_t>(request.seed.size())) {
    return fail_errno("getrandom");
  }
  TANDEM_TRY(client.ask<agent::Done>(request, end_));
  return "reseeded";
}

Result<std::string> GuestSettler::announce(AgentClient& client) {
  const auto reply = TANDEM_TRY(client.ask<agent::AnnounceReply>(agent::AnnounceRequest{}, end_));
  return fmt::format("announced with {} address{}", reply.addresses.size(), reply.addresses.size() == 1 ? "" : "es");
}

}  // namespace tandem::control
