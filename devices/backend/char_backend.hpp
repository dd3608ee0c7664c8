// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tandem::devices {

/// The device that takes a backend's input. Called with the device's mutex held.
class CharSink {
 public:
  virtual ~CharSink() = default;
  /// How many bytes `receive` would take now; 0 holds the input back until `CharBackend::resume_input`.
  [[nodiscard]] virtual size_t room() const = 0;
  /// @pre bytes.size() <= room().
  virtual void receive(std::span<const std::byte> bytes) = 0;
};

/// The host's end of a console: a terminal, file, socket, or nothing. Belongs to one device and is called under its
/// mutex.
class CharBackend {
 public:
  virtual ~CharBackend() = default;

  /// Passes output on; never blocks. What a reader that does not read leaves no room for is dropped and counted.
  virtual void write(std::span<const std::byte> bytes) = 0;

  /// Bytes dropped so far.
  [[nodiscard]] virtual uint64_t dropped_bytes() const = 0;

  /// Starts input into `sink`, or ends it with nullptr.
  virtual void set_sink(CharSink* sink) = 0;

  /// The sink has room again: read on. Never calls the sink before it returns.
  virtual void resume_input() = 0;

  /// Where the other end is found, in words for people: "/dev/pts/3".
  [[nodiscard]] virtual std::string endpoint() const = 0;
};

/// Drops all output and has no input.
class NullBackend final : public CharBackend {
 public:
  void write(std::span<const std::byte> /*bytes*/) override {}
  [[nodiscard]] uint64_t dropped_bytes() const override { return 0; }
  void set_sink(CharSink* /*sink*/) override {}
  void resume_input() override {}
  [[nodiscard]] std::string endpoint() const override { return "none"; }
};

}  // namespace tandem::devices
