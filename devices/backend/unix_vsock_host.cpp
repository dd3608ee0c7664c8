// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/unix_vsock_host.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace tandem::devices {
namespace {

/// How long clients wait after one could not be accepted for want of descriptors.
constexpr uint64_t kAcceptRetryNs = 1'000'000'000;

/// Clients that come all at once.
constexpr int kBacklog = 512;

/// The port of "CONNECT <port>\n"; nothing if the line is another one.
std::optional<uint32_t> port_of(std::string_view line) {
  constexpr std::string_view kCommand = "CONNECT ";
  if (!line.starts_with(kCommand) || !line.ends_with('\n')) {
    return std::nullopt;
  }
  line.remove_prefix(kCommand.size());
  line.remove_suffix(1);
  uint32_t port = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), port);
  constexpr uint32_t kAnyPort = UINT32_MAX;
  if (error != std::errc() || end != line.data() + line.size() || port == kAnyPort) {
    return std::nullopt;
  }
  return port;
}

}  // namespace

Result<std::unique_ptr<UnixVsockHost>> UnixVsockHost::create(DeviceExecutor& executor, std::string path) {
  return create(executor, std::move(path),
                {.accept = &ListeningSocket::accept,
                 .accept_retry = TANDEM_TRY(LoopTimer::create(executor, LoopTimer::Base::kMonotonic)),
                 .handshake_round = TANDEM_TRY(LoopTimer::create(executor, LoopTimer::Base::kMonotonic))});
}

Result<std::unique_ptr<UnixVsockHost>> UnixVsockHost::create(DeviceExecutor& executor, std::string path, Parts parts) {
  ListeningSocket listener = TANDEM_TRY(ListeningSocket::create(std::move(path), kBacklog));
  std::unique_ptr<UnixVsockHost> host(new UnixVsockHost(executor, std::move(listener), std::move(parts)));
  UnixVsockHost* const self = host.get();
  self->parts_.accept_retry->set_callback([self] {
    self->is_out_of_descriptors_ = false;
    self->update_listening();
  });
  self->parts_.handshake_round->set_callback([self] { self->end_round(); });
  self->listener_watch_ =
      TANDEM_TRY(executor.watch(self->listener_.fd(), Events::kReadable, [self](Events) { self->accept_client(); }));
  return host;
}

void UnixVsockHost::set_accepting(bool accepting) {
  is_accepting_ = accepting;
  update_listening();
  update_round();
  for (Handshake& handshake : handshakes_) {
    handshake.watch.set_events(accepting ? Events::kReadable : Events::kNone);
  }
}

void UnixVsockHost::update_listening() {
  listener_watch_.set_events(is_accepting_ && !is_out_of_descriptors_ ? Events::kReadable : Events::kNone);
}

Result<UniqueFd> UnixVsockHost::connect(uint32_t port) {
  const std::string path = listener_.path() + "_" + std::to_string(port);
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) {
    return fail(Errc::kOutOfRange, "socket path of {} bytes; at most {} are possible: {}", path.size(),
                sizeof address.sun_path - 1, path);
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A Unix socket is connected at once or not at all.
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno("{}", path);
  }
  return socket;
}

void UnixVsockHost::accept_client() {
  if (!is_accepting_) {
    return;  // a pause came between the event and its turn
  }
  auto client = parts_.accept(listener_);
  if (!client && !handshakes_.empty()) {
    // The new one still waits, and is accepted next.
    return refuse(handshakes_.begin(), "has not said what it wants, and its descriptor is needed");
  }
  if (!client) {
    log::warn("vsock: {}", client.error().message());
    is_out_of_descriptors_ = true;
    update_listening();
    parts_.accept_retry->arm_after_ns(kAcceptRetryNs);
    return;
  }
  if (*client) {
    wait_for_line(*std::move(client));
  }
}

void UnixVsockHost::wait_for_line(UniqueFd client) {
  if (handshakes_.size() == kMaxHandshakes) {
    refuse(handshakes_.begin(), "has not said for long what it wants");
  }
  const auto handshake = handshakes_.insert(handshakes_.end(), {.socket = std::move(client), .line = {}, .watch = {}});
  auto watch =
      executor_.watch(handshake->socket.get(), Events::kReadable, [this, handshake](Events) { read_line(handshake); });
  if (!watch) {
    return refuse(handshake, watch.error().message());
  }
  handshake->watch = *std::move(watch);
  update_round();
}

void UnixVsockHost::update_round() {
  const bool is_wanted = is_accepting_ && !handshakes_.empty();
  if (is_wanted && !is_round_running_) {
    parts_.handshake_round->arm_after_ns(kHandshakeNs);
  } else if (!is_wanted && is_round_running_) {
    parts_.handshake_round->disarm();
  }
  is_round_running_ = is_wanted;
}

/// Ends the wait of those that a round has seen before: whoever comes during one has all of the next.
void UnixVsockHost::end_round() {
  is_round_running_ = false;
  while (!handshakes_.empty() && handshakes_.front().is_old) {
    refuse(handshakes_.begin(), "has not said for long what it wants");
  }
  for (Handshake& handshake : handshakes_) {
    handshake.is_old = true;
  }
  update_round();
}

/// Reads what there is of a client's line, and no byte of what comes behind it.
void UnixVsockHost::read_line(Handshakes::iterator handshake) {
  if (!is_accepting_) {
    return;
  }
  std::array<char, kMaxLineBytes> bytes{};
  std::string& line = handshake->line;
  const ssize_t seen = ::recv(handshake->socket.get(), bytes.data(), bytes.size() - line.size(), MSG_PEEK);
  if (seen <= 0) {
    if (seen == 0 || (errno != EAGAIN && errno != EINTR)) {
      handshakes_.erase(handshake);  // it has gone
    }
    return;
  }
  const auto* const bytes_end = bytes.begin() + seen;
  const auto* const newline = std::find(bytes.cbegin(), bytes_end, '\n');
  const auto count = static_cast<size_t>((newline == bytes_end ? newline : newline + 1) - bytes.begin());
  line.append(bytes.data(), count);
  static_cast<void>(::recv(handshake->socket.get(), bytes.data(), count, 0));  // the bytes that were seen
  if (newline == bytes_end) {
    if (line.size() == kMaxLineBytes) {
      refuse(handshake, "sent something else than CONNECT and a port");
    }
    return;
  }
  const auto port = port_of(line);
  if (!port) {
    return refuse(handshake, "sent something else than CONNECT and a port");
  }
  handshake->watch = {};
  UniqueFd socket = std::move(handshake->socket);
  handshakes_.erase(handshake);
  if (client_ != nullptr) {
    client_->vsock_connected(std::move(socket), *port);
  }
}

void UnixVsockHost::refuse(Handshakes::iterator handshake, std::string_view why) {
  if (const uint64_t count = refusals_.count(); count != 0) {
    log::warn("vsock: a client of {} {} (time {})", listener_.path(), why, count);
  }
  handshakes_.erase(handshake);
}

}  // namespace tandem::devices
