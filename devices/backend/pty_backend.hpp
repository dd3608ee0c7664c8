// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/backend/char_input.hpp"
#include "devices/backend/char_output.hpp"
#include "vmm/lib/unique_fd/unique_fd.hpp"

namespace tandem::devices {

/// Console on a new pseudoterminal, in raw mode, that programs open and close as they like. What is printed while none has
/// it open is kept, up to `kHistoryBytes`.
class PtyBackend final : public CharBackend {
 public:
  /// @pre  the loop is not running, or the executor's mutex is held.
  static Result<std::unique_ptr<PtyBackend>> create(DeviceExecutor& executor);

  void write(std::span<const std::byte> bytes) override { output_->write(bytes); }
  [[nodiscard]] uint64_t dropped_bytes() const override { return output_->dropped_bytes(); }
  void set_sink(CharSink* sink) override { input_->set_sink(sink); }
  void resume_input() override { input_->resume_input(); }
  /// Path of the side that others open.
  [[nodiscard]] std::string endpoint() const override { return slave_path_; }

 private:
  PtyBackend(UniqueFd master, std::string slave_path)
      : master_(std::move(master)), slave_path_(std::move(slave_path)) {}
  void look_for_reader();
  Result<void> attach();
  void detach();

  const UniqueFd master_;
  const std::string slave_path_;
  std::unique_ptr<LoopTimer> reader_poll_;  // armed while no one has the other side open
  std::unique_ptr<CharOutput> output_;
  std::unique_ptr<CharInput> input_;
};

}  // namespace tandem::devices
