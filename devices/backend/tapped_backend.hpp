// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/backend/char_input.hpp"
#include "devices/backend/char_output.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// Another backend, and beside it a client that comes and goes on a socket: it first gets the newest output up to
/// `kHistoryBytes`, then what comes, and its input is the guest's as well as the other backend's.
class TappedBackend final : public CharBackend {
 public:
  /// @pre the loop is not running, or the executor's mutex is held.
  static Result<std::unique_ptr<TappedBackend>> create(DeviceExecutor& executor, std::unique_ptr<CharBackend> inner);

  /// Whether a client could be attached now: there is none, or it is gone.
  [[nodiscard]] bool is_free() const;
  /// @param client  a stream socket with O_NONBLOCK.
  /// @errors  Errc::kBusy: another client is attached. Those of the host.
  /// @thread  the loop's.
  Result<void> attach(UniqueFd client);

  void write(std::span<const std::byte> bytes) override;
  /// Of the other backend: a client who does not read misses something, and nobody else.
  [[nodiscard]] uint64_t dropped_bytes() const override { return inner_->dropped_bytes(); }
  void set_sink(CharSink* sink) override;
  void resume_input() override;
  [[nodiscard]] std::string endpoint() const override { return inner_->endpoint(); }

 private:
  explicit TappedBackend(std::unique_ptr<CharBackend> inner) : inner_(std::move(inner)) {}
  void on_input_end();
  void detach();

  std::unique_ptr<CharBackend> inner_;
  std::unique_ptr<CharOutput> output_;
  std::unique_ptr<CharInput> input_;
  int client_fd_ = -1;  // held by output_ while a client is attached
};

}  // namespace tandem::devices
