// SPDX-License-Identifier: Apache-2.0
#include "vmm/cli/connection_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "vmm/lib/log/log.hpp"
#include "vmm/lib/thread/start_thread.hpp"

namespace tandem::cli {
namespace {

/// Waits for one event. @return false: the relay is to end.
bool wait_for(int fd, short events, int end_fd) {
  std::array<pollfd, 2> entries{{{fd, events, 0}, {end_fd, POLLIN, 0}}};
  while (::poll(entries.data(), entries.size(), -1) < 0) {
    if (errno != EINTR) {
      return false;
    }
  }
  return entries[1].revents == 0;
}

bool may_try_again() { return errno == EAGAIN || errno == EINTR; }

bool send_all(int to, std::span<const std::byte> bytes, int end_fd) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (!may_try_again() || !wait_for(to, POLLOUT, end_fd)) {
      return false;
    }
  }
  return true;
}

/// Passes bytes on in one direction until their end.
void pass(int from, int to, int end_fd) {
  std::vector<std::byte> buffer(256U << 10);
  while (wait_for(from, POLLIN, end_fd)) {
    const ssize_t count = ::recv(from, buffer.data(), buffer.size(), 0);
    if (count < 0 && may_try_again()) {
      continue;
    }
    if (count <= 0 || !send_all(to, std::span(buffer).first(static_cast<size_t>(count)), end_fd)) {
      break;
    }
  }
  ::shutdown(to, SHUT_WR);
  ::shutdown(from, SHUT_RD);
}

}  // namespace

Result<std::unique_ptr<ConnectionRelay>> ConnectionRelay::create(UniqueFd connection, std::string path) {
  const int flags = ::fcntl(connection.get(), F_GETFL);
  if (flags < 0 || ::fcntl(connection.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return fail_errno("fcntl");
  }
  auto listener = TANDEM_TRY(devices::ListeningSocket::create(std::move(path)));
  std::unique_ptr<ConnectionRelay> relay(
      new ConnectionRelay(std::move(connection), std::move(listener), TANDEM_TRY(create_eventfd())));
  relay->thread_ = TANDEM_TRY(start_thread("relay", [relay = relay.get()] { relay->main(); }));
  return relay;
}

ConnectionRelay::~ConnectionRelay() {
  signal_eventfd(end_.get());
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ConnectionRelay::main() {
  if (!wait_for(listener_.fd(), POLLIN, end_.get())) {
    return;
  }
  const auto client = listener_.accept();
  if (!client || !*client) {
    return;
  }
  auto back = start_thread("relay back", [this, fd = client->get()] { pass(connection_.get(), fd, end_.get()); });
  if (!back) {
    log::error("the connection is given up: {}", back.error().message());
    ::shutdown(connection_.get(), SHUT_RDWR);
    return;  // which closes the client
  }
  pass(client->get(), connection_.get(), end_.get());
  back->join();
}

}  // namespace tandem::cli
