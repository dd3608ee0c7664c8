// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "guest-agent/protocol/messages.hpp"

namespace tandem::cli {

/// A file of the host that becomes one of the guest; `-`: standard input.
struct PutFile {
  std::string local{};
  agent::PutRequest request{};
};

/// A file of the guest that becomes one of the host; `-`: standard output.
struct GetFile {
  agent::GetRequest request{};
  std::string local = "-";
};

/// The guest's clock is to show this, or if there is none what the host's shows.
struct SetClock {
  std::optional<uint64_t> realtime_ns{};
};

/// Fresh random bytes for the guest.
struct Reseed {};

/// What `tandem agent` is asked to do.
struct AgentRequest {
  std::string vsock_path{};  ///< Empty if the VM is named.
  std::string vm_name{};     ///< Empty if the path is known.
  bool json = false;
  std::chrono::seconds patience{0};  ///< How long to try again while no agent answers.
  std::string function{};            ///< As on the command line.
  std::variant<agent::PingRequest, agent::InfoRequest, agent::ExecRequest, PutFile, GetFile, agent::FreezeRequest,
               agent::ThawRequest, agent::PowerRequest, agent::PvStateRequest, SetClock, Reseed, agent::AnnounceRequest,
               agent::EventsRequest>
      what{};
};

}  // namespace tandem::cli
