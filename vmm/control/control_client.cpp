// SPDX-License-Identifier: Apache-2.0
#include "vmm/control/control_client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "vmm/control/vm_registry.hpp"
#include "vmm/control/vsock_dialer.hpp"

namespace tandem::control {
namespace {

Result<UniqueFd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() > kMaxSocketPathBytes) {
    return fail(Errc::kOutOfRange, "{}: the path of a socket has at most {} bytes, and this one {}", path,
                kMaxSocketPathBytes, path.size());
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno("{}", path);
  }
  return socket;
}

/// What a connection that breaks means to a user.
std::unexpected<Error> ended() { return fail(Errc::kClosed, "the virtual machine has ended"); }

}  // namespace

Result<ControlClient> ControlClient::connect(const std::string& directory, const std::string& name) {
  TANDEM_TRY(with_context(check_vm_name(name), "the name"));
  auto socket = connect_to(control_socket_path(directory, name));
  const bool is_nobody = !socket && (socket.error().os_error() == ENOENT || socket.error().os_error() == ECONNREFUSED);
  if (is_nobody) {
    return fail(Errc::kNotFound, "no virtual machine of that name is there (in {})", directory);
  }
  return ControlClient(TANDEM_TRY(std::move(socket)));
}

Result<Json> ControlClient::ask(const std::string& command, const Json& arguments, const Deadline& deadline,
                                const OnProgress& on_progress) {
  const uint64_t id = next_id_++;
  TANDEM_TRY(send(request_line({.id = id, .command = command, .arguments = arguments}), deadline));
  while (true) {
    ControlReply reply = TANDEM_TRY(receive(deadline));
    if (reply.id && *reply.id != id) {
      continue;
    }
    if (auto* const result = std::get_if<Result<Json>>(&reply.what)) {
      return std::move(*result);
    }
    if (on_progress) {
      on_progress(std::get<JobProgress>(reply.what));
    }
  }
}

Result<void> ControlClient::send(const std::string& line, const Deadline& deadline) {
  channel_.queue(line);
  while (true) {
    if (!channel_.flush()) {
      return {};  // the reply, which may be there already, says why
    }
    if (channel_.queued_bytes() == 0) {
      return {};
    }
    pollfd entry{.fd = channel_.fd(), .events = POLLOUT, .revents = 0};
    if (::poll(&entry, 1, deadline.poll_timeout_ms()) == 0) {
      return fail(Errc::kIo, "no answer in time");
    }
  }
}

Result<void> ControlClient::wait_readable(const Deadline& deadline) {
  pollfd entry{.fd = channel_.fd(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&entry, 1, deadline.poll_timeout_ms());
  } while (ready < 0 && errno == EINTR);
  return ready == 0 ? fail(Errc::kIo, "no answer in time") : Result<void>();
}

Result<ControlReply> ControlClient::receive(const Deadline& deadline) {
  while (true) {
    const auto line = channel_.next();
    if (!line) {
      return fail(Errc::kCorrupt, "a reply {}", line.error().message());
    }
    if (*line) {
      return parse_reply(**line);
    }
    TANDEM_TRY(wait_readable(deadline));
    const auto more = channel_.fill();
    if (!more || (!*more && !channel_.has_line())) {
      return ended();
    }
  }
}

Result<bool> ControlClient::wait_for_end(const Deadline& deadline) {
  while (true) {
    while (TANDEM_TRY(channel_.next())) {
    }
    const auto more = channel_.fill();
    if (!more || !*more) {
      return true;
    }
    if (!wait_readable(deadline)) {
      return false;
    }
  }
}

}  // namespace tandem::control
