// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "devices/backend/listening_socket.hpp"
#include "devices/backend/loop_timer.hpp"
#include "devices/backend/vsock_host.hpp"
#include "devices/bus/device_executor.hpp"
#include "vmm/lib/log/log.hpp"

namespace tandem::devices {

/// The host's side of vsock as Unix stream sockets. A program that connects to PATH and sends "CONNECT <port>\n" is
/// connected to that port of the guest; it gets "OK <port of the host>\n" when the guest has accepted, and the end of
/// the stream when not. What the guest connects to, port P of the host, is the socket PATH_P, served by whoever listens
/// there.
/// Clients that have not sent their line yet wait in numbers bounded by kMaxHandshakes, and by the descriptors that the
/// process may have; the oldest gives way. None waits for more than twice kHandshakeNs; a pause does not count.
class UnixVsockHost final : public VsockHost {
 public:
  static constexpr size_t kMaxHandshakes = 1024;
  /// Longest line of a client, its newline included [bytes].
  static constexpr size_t kMaxLineBytes = 32;
  /// How long a client has at least for its line.
  static constexpr uint64_t kHandshakeNs = 10'000'000'000;

  /// Accepts the next client of a socket, as ListeningSocket::accept.
  using Accept = std::function<Result<UniqueFd>(const ListeningSocket&)>;
  /// What it works with; tests put fakes in its place.
  struct Parts {
    Accept accept;
    std::unique_ptr<Timer> accept_retry;
    std::unique_ptr<Timer> handshake_round;
  };

  /// @errors  as ListeningSocket::create.
  /// @pre     the loop is not running, or the executor's mutex is held.
  static Result<std::unique_ptr<UnixVsockHost>> create(DeviceExecutor& executor, std::string path);
  static Result<std::unique_ptr<UnixVsockHost>> create(DeviceExecutor& executor, std::string path, Parts parts);

  void set_client(VsockClient* client) override { client_ = client; }
  void set_accepting(bool accepting) override;
  Result<UniqueFd> connect(uint32_t port) override;

 private:
  /// A client whose line is not complete.
  struct Handshake {
    UniqueFd socket;
    std::string line;
    bool is_old = false;     // a round has seen it before
    EventLoop::Watch watch;  // after socket: ends before the descriptor is closed
  };
  using Handshakes = std::list<Handshake>;

  UnixVsockHost(DeviceExecutor& executor, ListeningSocket listener, Parts parts)
      : executor_(executor), listener_(std::move(listener)), parts_(std::move(parts)) {}
  void accept_client();
  void wait_for_line(UniqueFd client);
  void end_round();
  void read_line(Handshakes::iterator handshake);
  void refuse(Handshakes::iterator handshake, std::string_view why);
  void update_listening();
  void update_round();

  DeviceExecutor& executor_;
  VsockClient* client_ = nullptr;
  ListeningSocket listener_;
  EventLoop::Watch listener_watch_;
  Parts parts_;
  Handshakes handshakes_;          // oldest first
  bool is_round_running_ = false;  // whether handshake_round is armed: so while clients wait, except in a pause
  bool is_accepting_ = true;
  bool is_out_of_descriptors_ = false;
  log::RateLimit refusals_;
};

}  // namespace tandem::devices
