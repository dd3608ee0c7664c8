// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/tapped_backend.hpp"

#include <fcntl.h>
#include <poll.h>

#include <utility>

namespace tandem::devices {
namespace {

bool is_hung_up(int fd) {
  pollfd entry{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

Result<std::unique_ptr<TappedBackend>> TappedBackend::create(DeviceExecutor& executor,
                                                             std::unique_ptr<CharBackend> inner) {
  std::unique_ptr<TappedBackend> backend(new TappedBackend(std::move(inner)));
  backend->output_ = TANDEM_TRY(CharOutput::create(executor, CharOutput::Unattached::kReplay));
  backend->input_ = TANDEM_TRY(CharInput::create(executor));
  return backend;
}

bool TappedBackend::is_free() const { return client_fd_ < 0 || !input_->is_attached() || is_hung_up(client_fd_); }

Result<void> TappedBackend::attach(UniqueFd client) {
  if (!is_free()) {
    return fail(Errc::kBusy, "another client is attached to the console");
  }
  detach();
  UniqueFd copy(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    return fail_errno("duplicate descriptor");
  }
  client_fd_ = client.get();
  TANDEM_TRY(output_->attach(CharDescriptor::own_socket(std::move(client)), [this] { detach(); }));
  auto attached = input_->attach(CharDescriptor::own_socket(std::move(copy)), [this](IoStatus) { on_input_end(); });
  if (!attached) {
    detach();
  }
  return attached;
}

void TappedBackend::on_input_end() {
  if (is_hung_up(client_fd_)) {
    detach();
  }
}

void TappedBackend::detach() {
  output_->detach();
  input_->detach();
  client_fd_ = -1;
}

void TappedBackend::write(std::span<const std::byte> bytes) {
  inner_->write(bytes);
  output_->write(bytes);
}

void TappedBackend::set_sink(CharSink* sink) {
  inner_->set_sink(sink);
  input_->set_sink(sink);
}

void TappedBackend::resume_input() {
  inner_->resume_input();
  input_->resume_input();
}

}  // namespace tandem::devices
