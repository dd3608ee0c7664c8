// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guest-agent/protocol/message.hpp"

/// The messages of the protocol, in the order of docs/agent-protocol.md. Times are nanoseconds, sizes bytes.
namespace tandem::agent {

/// The vsock port of the agent: below 1024, so that no unprivileged program of the guest can take its place.
inline constexpr uint32_t kAgentPort = 716;

/// Versions of the protocol that this code speaks.
inline constexpr uint32_t kOldestProtocol = 1;
inline constexpr uint32_t kNewestProtocol = 1;

/// What an agent can be asked for: each is the name of a request.
inline constexpr std::array<std::string_view, 13> kCapabilities{"ping",   "info",     "exec",  "put",      "get",
                                                                "freeze", "thaw",     "power", "pv-state", "set-time",
                                                                "reseed", "announce", "events"};

/// The agent's first words on a connection.
struct AgentHello {
  static constexpr std::string_view kName = "agent";
  uint32_t oldest_protocol = kOldestProtocol;
  uint32_t newest_protocol = kNewestProtocol;
  std::string version{};
  std::vector<std::string> capabilities{};
  template <class A>
  void fields(A& a) {
    a("oldest_protocol", oldest_protocol);
    a("newest_protocol", newest_protocol);
    a("version", version);
    a("capabilities", capabilities);
  }
};

/// The client's first words: what is spoken from here on.
struct ClientHello {
  static constexpr std::string_view kName = "client";
  uint32_t protocol = kNewestProtocol;
  template <class A>
  void fields(A& a) {
    a("protocol", protocol);
  }
};

/// Longest text of an error [bytes].
inline constexpr size_t kMaxErrorBytes = 1024;

/// Answers a request that was not fulfilled.
struct ErrorReply {
  static constexpr std::string_view kName = "error";
  std::string code{};  ///< One word, for programs; see `error_code`.
  std::string text{};  ///< One line, for people.
  template <class A>
  void fields(A& a) {
    a("code", code);
    a("text", text);
  }
};

/// Answers a request that has nothing to tell but that it was fulfilled, or that its stream may begin.
struct Done {
  static constexpr std::string_view kName = "done";
  template <class A>
  void fields(A& /*archive*/) {}
};

struct PingRequest {
  static constexpr std::string_view kName = "ping";
  template <class A>
  void fields(A& /*archive*/) {}
};

struct PingReply {
  static constexpr std::string_view kName = "pong";
  uint64_t uptime_ns = 0;
  template <class A>
  void fields(A& a) {
    a("uptime_ns", uptime_ns);
  }
};

struct InfoRequest {
  static constexpr std::string_view kName = "info";
  template <class A>
  void fields(A& /*archive*/) {}
};

struct NetworkAddress {
  std::string interface{};
  std::string address{};
  uint32_t prefix_length = 0;
  template <class A>
  void fields(A& a) {
    a("interface", interface);
    a("address", address);
    a("prefix_length", prefix_length);
  }
};

struct Filesystem {
  std::string mount_point{};
  std::string type{};
  std::string source{};
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;
  template <class A>
  void fields(A& a) {
    a("mount_point", mount_point);
    a("type", type);
    a("source", source);
    a("size_bytes", size_bytes);
    a("free_bytes", free_bytes);
  }
};

struct InfoReply {
  static constexpr std::string_view kName = "info";
  std::string hostname{};
  std::string kernel{};
  std::string kernel_version{};
  std::string machine{};
  std::string boot_id{};
  std::string agent_version{};
  uint64_t uptime_ns = 0;
  uint64_t agent_ready_ns = 0;  ///< Uptime at which the agent began to listen.
  std::vector<NetworkAddress> addresses{};
  std::vector<Filesystem> filesystems{};  ///< Those on block devices.
  template <class A>
  void fields(A& a) {
    a("hostname", hostname);
    a("kernel", kernel);
    a("kernel_version", kernel_version);
    a("machine", machine);
    a("boot_id", boot_id);
    a("agent_version", agent_version);
    a("uptime_ns", uptime_ns);
    a("agent_ready_ns", agent_ready_ns);
    a("addresses", addresses);
    a("filesystems", filesystems);
  }
};

struct ExecRequest {
  static constexpr std::string_view kName = "exec";
  std::vector<std::string> arguments{};    ///< The program first; looked up in PATH.
  std::vector<std::string> environment{};  ///< NAME=VALUE, besides what the agent has itself.
  std::optional<std::string> directory{};
  std::optional<uint64_t> timeout_ns{};
  template <class A>
  void fields(A& a) {
    a("arguments", arguments);
    a("environment", environment);
    a("directory", directory);
    a("timeout_ns", timeout_ns);
  }
};

struct ExecStarted {
  static constexpr std::string_view kName = "exec-started";
  uint32_t pid = 0;
  template <class A>
  void fields(A& a) {
    a("pid", pid);
  }
};

/// From the client, while the program runs.
struct ExecSignal {
  static constexpr std::string_view kName = "exec-signal";
  uint32_t signal = 0;
  template <class A>
  void fields(A& a) {
    a("signal", signal);
  }
};

struct ExecEnded {
  static constexpr std::string_view kName = "exec-ended";
  std::optional<uint32_t> status{};  ///< If it exited.
  std::optional<uint32_t> signal{};  ///< If a signal ended it.
  bool timed_out = false;
  template <class A>
  void fields(A& a) {
    a("status", status);
    a("signal", signal);
    a("timed_out", timed_out);
  }
};

struct PutRequest {
  static constexpr std::string_view kName = "put";
  std::string path{};
  uint32_t mode = 0644;
  template <class A>
  void fields(A& a) {
    a("path", path);
    a("mode", mode);
  }
};

struct GetRequest {
  static constexpr std::string_view kName = "get";
  std::string path{};
  template <class A>
  void fields(A& a) {
    a("path", path);
  }
};

/// Ends a file's way in either direction.
struct FileReply {
  static constexpr std::string_view kName = "file";
  uint64_t size_bytes = 0;
  uint32_t mode = 0;
  template <class A>
  void fields(A& a) {
    a("size_bytes", size_bytes);
    a("mode", mode);
  }
};

struct FreezeRequest {
  static constexpr std::string_view kName = "freeze";
  uint64_t timeout_ns = 0;  ///< The file systems thaw by themselves after that.
  template <class A>
  void fields(A& a) {
    a("timeout_ns", timeout_ns);
  }
};

struct FreezeReply {
  static constexpr std::string_view kName = "frozen";
  std::vector<std::string> mount_points{};
  template <class A>
  void fields(A& a) {
    a("mount_points", mount_points);
  }
};

struct ThawRequest {
  static constexpr std::string_view kName = "thaw";
  template <class A>
  void fields(A& /*archive*/) {}
};

/// Answers `thaw`, and ends `freeze`.
struct ThawReply {
  static constexpr std::string_view kName = "thawed";
  bool timed_out = false;  ///< By itself, because nobody asked for it in time.
  template <class A>
  void fields(A& a) {
    a("timed_out", timed_out);
  }
};

struct PowerRequest {
  static constexpr std::string_view kName = "power";
  bool reboots = false;  ///< Or else powers off.
  bool forced = false;   ///< Without init's help: file systems are synchronised, services not stopped.
  template <class A>
  void fields(A& a) {
    a("reboots", reboots);
    a("forced", forced);
  }
};

struct PvStateRequest {
  static constexpr std::string_view kName = "pv-state";
  template <class A>
  void fields(A& /*archive*/) {}
};

struct VcpuState {
  uint32_t vcpu = 0;
  std::optional<bool> preempted{};
  std::optional<uint64_t> preempt_count{};
  std::optional<uint64_t> stolen_ns{};
  template <class A>
  void fields(A& a) {
    a("vcpu", vcpu);
    a("preempted", preempted);
    a("preempt_count", preempt_count);
    a("stolen_ns", stolen_ns);
  }
};

struct PvStateReply {
  static constexpr std::string_view kName = "pv-state";
  std::vector<VcpuState> vcpus{};              ///< Those that are online.
  std::optional<std::string> no_preemption{};  ///< Why `preempted` and `preempt_count` are not available.
  std::optional<std::string> no_stolen{};      ///< Why `stolen_ns` is not.
  template <class A>
  void fields(A& a) {
    a("vcpus", vcpus);
    a("no_preemption", no_preemption);
    a("no_stolen", no_stolen);
  }
};

struct SetTimeRequest {
  static constexpr std::string_view kName = "set-time";
  uint64_t realtime_ns = 0;  ///< Since 1970-01-01T00:00Z.
  template <class A>
  void fields(A& a) {
    a("realtime_ns", realtime_ns);
  }
};

struct SetTimeReply {
  static constexpr std::string_view kName = "time-set";
  int64_t step_ns = 0;  ///< By how much the clock went forward.
  template <class A>
  void fields(A& a) {
    a("step_ns", step_ns);
  }
};

struct ReseedRequest {
  static constexpr std::string_view kName = "reseed";
  std::string seed{};  ///< kMinSeedBytes to kMaxSeedBytes random bytes.
  template <class A>
  void fields(A& a) {
    a("seed", seed);
  }
};

inline constexpr size_t kMinSeedBytes = 32;
inline constexpr size_t kMaxSeedBytes = 512;

struct AnnounceRequest {
  static constexpr std::string_view kName = "announce";
  template <class A>
  void fields(A& /*archive*/) {}
};

struct AnnounceReply {
  static constexpr std::string_view kName = "announced";
  std::vector<NetworkAddress> addresses{};
  template <class A>
  void fields(A& a) {
    a("addresses", addresses);
  }
};

struct EventsRequest {
  static constexpr std::string_view kName = "events";
  template <class A>
  void fields(A& /*archive*/) {}
};

/// Something that happened in the guest; those before the request as well, as far as the kernel's log reaches.
struct Event {
  static constexpr std::string_view kName = "event";
  std::string kind{};      ///< boot-finished, oom, oops or panic.
  uint64_t uptime_ns = 0;  ///< When.
  std::string text{};      ///< The kernel's own words; empty for boot-finished.
  template <class A>
  void fields(A& a) {
    a("kind", kind);
    a("uptime_ns", uptime_ns);
    a("text", text);
  }
};

}  // namespace tandem::agent
