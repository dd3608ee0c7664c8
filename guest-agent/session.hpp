// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "guest-agent/freezer.hpp"
#include "guest-agent/guest_control.hpp"
#include "guest-agent/kernel_events.hpp"
#include "guest-agent/protocol/frame_channel.hpp"

namespace tandem::agent {

/// What all sessions of an agent work on.
struct SessionContext {
  GuestControl& guest;
  Freezer& freezer;
  EventSources events{};
  std::string root{};           ///< The folder that holds proc and sys; empty for the guest's own.
  uint64_t agent_ready_ns = 0;  ///< Uptime at which the agent began to listen.
};

/// One client's connection, from the first word to the end.
class Session {
 public:
  Session(FrameChannel channel, const SessionContext& context) : channel_(std::move(channel)), context_(context) {}

  /// Serves requests until the connection ends, or the client breaks the protocol.
  void run();

  /// Says instead that the agent has no room for another client.
  void refuse();

 private:
  using Handler = Result<void> (Session::*)(const Message& request);
  struct Request {
    std::string_view name;
    Handler handler;
  };
  static std::span<const Request> requests();

  Result<void> shake_hands();
  Result<void> serve_one();
  Result<Message> next_request();
  bool report(const Error& error);

  Result<void> ping(const Message& request);
  Result<void> info(const Message& request);
  Result<void> exec(const Message& request);
  Result<void> put(const Message& request);
  Result<void> get(const Message& request);
  Result<void> freeze(const Message& request);
  Result<bool> hold_freeze(const Freezer::Lease& lease, const Deadline& deadline);
  Result<void> await_settled(const Freezer::Lease& lease, const Deadline& deadline);
  Result<void> thaw(const Message& request);
  Result<void> power(const Message& request);
  Result<void> pv_state(const Message& request);
  Result<void> set_time(const Message& request);
  Result<void> reseed(const Message& request);
  Result<void> announce(const Message& request);
  Result<void> events(const Message& request);

  FrameChannel channel_;
  const SessionContext& context_;
};

}  // namespace tandem::agent
