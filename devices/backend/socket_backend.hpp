// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/backend/char_input.hpp"
#include "devices/backend/char_output.hpp"
#include "devices/backend/listening_socket.hpp"

namespace tandem::devices {

/// Console on a Unix stream socket: one client at a time, any number one after the other. A new client first gets the
/// newest output up to `kHistoryBytes`. A client who has ended its input still gets output, until another one comes.
class SocketBackend final : public CharBackend {
 public:
  /// @errors  as ListeningSocket::create.
  /// @pre     the loop is not running, or the executor's mutex is held.
  static Result<std::unique_ptr<SocketBackend>> create(DeviceExecutor& executor, std::string path);

  void write(std::span<const std::byte> bytes) override { output_->write(bytes); }
  [[nodiscard]] uint64_t dropped_bytes() const override { return output_->dropped_bytes(); }
  void set_sink(CharSink* sink) override { input_->set_sink(sink); }
  void resume_input() override { input_->resume_input(); }
  /// Path of the socket.
  [[nodiscard]] std::string endpoint() const override { return listener_.path(); }

 private:
  explicit SocketBackend(ListeningSocket listener) : listener_(std::move(listener)) {}
  void accept_client();
  Result<void> attach(UniqueFd client);
  void on_input_end();
  void detach();

  ListeningSocket listener_;
  EventLoop::Watch listener_watch_;
  std::unique_ptr<LoopTimer> accept_retry_;
  std::unique_ptr<CharOutput> output_;
  std::unique_ptr<CharInput> input_;
  int client_fd_ = -1;  // held by output_ while a client is attached
};

}  // namespace tandem::devices
