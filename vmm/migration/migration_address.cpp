// SPDX-License-Identifier: Apache-2.0
#include "vmm/migration/migration_address.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

#include "vmm/lib/log/log.hpp"

namespace tandem::migration {
namespace {

constexpr size_t kMaxPathBytes = sizeof(sockaddr_un{}.sun_path) - 1;

/// A socket address of any family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size_bytes = 0;
  [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// The address, if `host` is a number.
std::optional<SocketAddress> tcp_address(const std::string& host, uint16_t port) {
  SocketAddress address;
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    address.size_bytes = sizeof v4;
    std::memcpy(&address.storage, &v4, sizeof v4);
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    address.size_bytes = sizeof v6;
    std::memcpy(&address.storage, &v6, sizeof v6);
  } else {
    return std::nullopt;
  }
  return address;
}

SocketAddress unix_address(const std::string& path) {
  SocketAddress address{.size_bytes = sizeof(sockaddr_un)};
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, path.data(), path.size());
  std::memcpy(&address.storage, &local, sizeof local);
  return address;
}

SocketAddress socket_address(const MigrationAddress& address) {
  if (address.kind == MigrationAddress::Kind::kUnix) {
    return unix_address(address.path);
  }
  const auto tcp = tcp_address(address.host, address.port);
  TANDEM_ASSERT(tcp.has_value(), "parse has checked the host");
  return *tcp;
}

Result<void> parse_tcp(std::string_view rest, MigrationAddress& address) {
  const size_t colon = rest.rfind(':');
  const auto port = colon == std::string_view::npos ? std::nullopt : parse_number<uint16_t>(rest.substr(colon + 1));
  if (!port) {
    return fail(Errc::kInvalidArgument, "{}: tcp:HOST:PORT with a port up to {} is due", address.text,
                std::numeric_limits<uint16_t>::max());
  }
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  address.host = host == "localhost" ? "127.0.0.1" : host;
  address.port = *port;
  if (!tcp_address(address.host, address.port)) {
    return fail(Errc::kInvalidArgument, "{}: HOST is an address in numbers or 'localhost'; names are not looked up",
                address.text);
  }
  return {};
}

Result<void> wait_for(int fd, short events, int interrupt_fd, const Deadline& deadline) {
  std::array<pollfd, 2> entries{{{fd, events, 0}, {interrupt_fd, POLLIN, 0}}};
  while (true) {
    const int ready = ::poll(entries.data(), entries.size(), deadline.poll_timeout_ms());
    if (ready > 0) {
      return entries[1].revents != 0 ? fail(Errc::kClosed, "interrupted") : Result<void>();
    }
    if (ready < 0 && errno != EINTR) {
      return fail_errno("poll");
    }
    if (deadline.has_passed()) {
      return fail(Errc::kIo, "nobody answers");
    }
  }
}

Result<UniqueFd> stream_socket(const SocketAddress& address) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return fail_errno("socket");
  }
  return fd;
}

/// Messages that wait for answers must not wait for company; only tcp knows the option.
void send_at_once(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Result<void> connect_socket(int fd, const SocketAddress& address, const Deadline& deadline, int interrupt_fd) {
  if (::connect(fd, address.generic(), address.size_bytes) == 0) {
    return {};
  }
  if (errno != EINPROGRESS && errno != EINTR) {
    return fail_errno("connect");
  }
  TANDEM_TRY(wait_for(fd, POLLOUT, interrupt_fd, deadline));
  int os_error = 0;
  socklen_t size = sizeof os_error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &os_error, &size) != 0 || os_error != 0) {
    return std::unexpected(Error::from_errno("connect", os_error));
  }
  return {};
}

/// The descriptor of kFd, which is nobody else's from now on.
Result<UniqueFd> inherit(const MigrationAddress& address) {
  if (::fcntl(address.fd, F_SETFD, FD_CLOEXEC) != 0) {
    return fail_errno("{}", address.text);
  }
  return UniqueFd(address.fd);
}

}  // namespace

Result<MigrationAddress> MigrationAddress::parse(std::string_view text) {
  MigrationAddress address;
  address.text = text;
  const size_t colon = text.find(':');
  const std::string_view scheme = text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (scheme == "unix") {
    address.kind = Kind::kUnix;
    address.path = rest;
    if (rest.empty() || rest.size() > kMaxPathBytes || rest.contains('\0')) {
      return fail(Errc::kOutOfRange, "{}: a socket path of {} bytes; from 1 to {} are possible", text, rest.size(),
                  kMaxPathBytes);
    }
    return address;
  }
  if (scheme == "tcp") {
    address.kind = Kind::kTcp;
    TANDEM_TRY(parse_tcp(rest, address));
    return address;
  }
  if (scheme == "fd") {
    const auto fd = parse_number<int>(rest);
    if (!fd || *fd < 3) {
      return fail(Errc::kInvalidArgument, "{}: fd:N with the number of an inherited socket, from 3 on, is due", text);
    }
    address.fd = *fd;
    return address;
  }
  return fail(Errc::kInvalidArgument, "'{}' is no address: unix:PATH, tcp:HOST:PORT or fd:N is due", text);
}

bool MigrationAddress::is_local() const { return kind != Kind::kTcp || host == "::1" || host.starts_with("127."); }

Result<UniqueFd> connect_to(const MigrationAddress& address, const Deadline& deadline, int interrupt_fd) {
  if (address.kind == MigrationAddress::Kind::kFd) {
    return inherit(address);
  }
  const SocketAddress where = socket_address(address);
  UniqueFd fd = TANDEM_TRY(stream_socket(where));
  TANDEM_TRY(with_context(connect_socket(fd.get(), where, deadline, interrupt_fd), address.text));
  send_at_once(fd.get());
  return fd;
}

Result<MigrationListener> MigrationListener::create(const MigrationAddress& address) {
  MigrationListener listener;
  if (address.kind == MigrationAddress::Kind::kFd) {
    listener.socket_ = TANDEM_TRY(inherit(address));
    listener.inherited_ = true;
    return listener;
  }
  if (address.kind == MigrationAddress::Kind::kUnix) {
    listener.unix_.emplace(TANDEM_TRY(devices::ListeningSocket::create(address.path)));
    return listener;
  }
  if (!address.is_local()) {
    log::warn(
        "{}: tcp is neither encrypted nor authenticated: whoever reaches this address can read the machine, or put"
        " another in its place; unix: or fd: through ssh keep it private",
        address.text);
  }
  const SocketAddress where = socket_address(address);
  listener.socket_ = TANDEM_TRY(stream_socket(where));
  const int yes = 1;
  ::setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener.fd(), where.generic(), where.size_bytes) != 0 || ::listen(listener.fd(), 1) != 0) {
    return fail_errno("{}", address.text);
  }
  return listener;
}

Result<UniqueFd> MigrationListener::accept(int interrupt_fd) {
  if (inherited_) {
    if (!socket_) {
      return fail(Errc::kClosed, "the inherited connection is over");
    }
    return std::move(socket_);
  }
  while (true) {
    TANDEM_TRY(wait_for(fd(), POLLIN, interrupt_fd, Deadline()));
    UniqueFd sender(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (sender) {
      send_at_once(sender.get());
      return sender;
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      return fail_errno("accept");
    }
  }
}

Result<uint16_t> MigrationListener::port() const {
  SocketAddress bound{.size_bytes = sizeof(sockaddr_storage)};
  if (::getsockname(fd(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size_bytes) != 0) {
    return fail_errno("getsockname");
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &bound.storage, sizeof v4);
  return ntohs(v4.sin_port);  // at the same place for IPv6
}

}  // namespace tandem::migration
