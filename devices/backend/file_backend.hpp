// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/backend/char_backend.hpp"
#include "devices/backend/char_output.hpp"

namespace tandem::devices {

/// Console whose output goes to a file, and that has no input. Regular files know no write that does not wait: a file
/// system that stalls holds up the event loop and a guest that prints.
class FileBackend final : public CharBackend {
 public:
  /// Creates the file, or empties it. Devices and named pipes are opened as they are.
  /// @errors  Errc::kInvalidArgument: a directory. Errc::kNotFound: no such folder. Errc::kIo: a named pipe that no one
  ///          reads, or another failure.
  /// @pre     the loop is not running, or the executor's mutex is held.
  static Result<std::unique_ptr<FileBackend>> create(DeviceExecutor& executor, std::string path);

  void write(std::span<const std::byte> bytes) override { output_->write(bytes); }
  [[nodiscard]] uint64_t dropped_bytes() const override { return output_->dropped_bytes(); }
  void set_sink(CharSink* /*sink*/) override {}
  void resume_input() override {}
  [[nodiscard]] std::string endpoint() const override { return path_; }

 private:
  FileBackend(std::string path, std::unique_ptr<CharOutput> output)
      : path_(std::move(path)), output_(std::move(output)) {}

  const std::string path_;
  std::unique_ptr<CharOutput> output_;
};

}  // namespace tandem::devices
