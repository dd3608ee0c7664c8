// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/socket_backend.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <string_view>
#include <utility>

#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

/// How long clients wait after one could not be accepted for want of descriptors.
constexpr uint64_t kAcceptRetryNs = 1'000'000'000;

bool is_hung_up(int fd) {
  pollfd entry{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

void refuse(int client) {
  constexpr std::string_view kText = "tandem: this console is in use by another client\r\n";
  ::send(client, kText.data(), kText.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Result<std::unique_ptr<SocketBackend>> SocketBackend::create(DeviceExecutor& executor, std::string path) {
  ListeningSocket listener = TANDEM_TRY(ListeningSocket::create(std::move(path)));
  std::unique_ptr<SocketBackend> backend(new SocketBackend(std::move(listener)));
  SocketBackend* const self = backend.get();
  self->output_ = TANDEM_TRY(CharOutput::create(executor, CharOutput::Unattached::kReplay));
  self->input_ = TANDEM_TRY(CharInput::create(executor));
  self->accept_retry_ = TANDEM_TRY(LoopTimer::create(executor, LoopTimer::Base::kMonotonic,
                                                     [self] { self->listener_watch_.set_events(Events::kReadable); }));
  self->listener_watch_ =
      TANDEM_TRY(executor.watch(self->listener_.fd(), Events::kReadable, [self](Events) { self->accept_client(); }));
  return backend;
}

void SocketBackend::accept_client() {
  auto client = listener_.accept();
  if (!client) {
    log::warn("console: {}", client.error().message());
    listener_watch_.set_events(Events::kNone);
    accept_retry_->arm_after_ns(kAcceptRetryNs);
    return;
  }
  if (!*client) {
    return;
  }
  if (client_fd_ >= 0 && input_->is_attached() && !is_hung_up(client_fd_)) {
    refuse(client->get());
    return;
  }
  detach();
  if (const auto done = attach(std::move(*client)); !done) {
    log::warn("console {}: {}", listener_.path(), done.error().message());
    detach();
  }
}

Result<void> SocketBackend::attach(UniqueFd client) {
  UniqueFd copy(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    return fail_errno("duplicate descriptor");
  }
  client_fd_ = client.get();
  TANDEM_TRY(output_->attach(CharDescriptor::own_socket(std::move(client)), [this] { detach(); }));
  TANDEM_TRY(input_->attach(CharDescriptor::own_socket(std::move(copy)), [this](IoStatus) { on_input_end(); }));
  return {};
}

void SocketBackend::on_input_end() {
  if (is_hung_up(client_fd_)) {
    detach();
  }
}

void SocketBackend::detach() {
  output_->detach();
  input_->detach();
  client_fd_ = -1;
}

}  // namespace tandem::devices
