// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "devices/backend/char_backend.hpp"

namespace tandem::devices {

/// The host's end of a console under a test's control: keeps the output, and types input on request.
class FakeCharBackend final : public CharBackend {
 public:
  void write(std::span<const std::byte> bytes) override {
    output_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ++write_count_;
  }
  [[nodiscard]] uint64_t dropped_bytes() const override { return 0; }
  void set_sink(CharSink* sink) override { sink_ = sink; }
  void resume_input() override { ++resume_count_; }
  [[nodiscard]] std::string endpoint() const override { return "test"; }

  /// Queues `text` and hands over as much as the sink takes now.
  void type(std::string_view text) {
    pending_ += text;
    deliver();
  }
  /// Hands over as much of the queue as the sink takes now, as a real backend does after `resume_input`.
  void deliver() {
    while (sink_ != nullptr && !pending_.empty()) {
      const size_t count = std::min(sink_->room(), pending_.size());
      if (count == 0) {
        return;
      }
      sink_->receive(std::as_bytes(std::span(pending_).first(count)));
      pending_.erase(0, count);
    }
  }

  [[nodiscard]] const std::string& output() const { return output_; }
  [[nodiscard]] uint64_t write_count() const { return write_count_; }
  [[nodiscard]] uint64_t resume_count() const { return resume_count_; }
  /// Input that the sink has not taken yet.
  [[nodiscard]] const std::string& pending() const { return pending_; }
  [[nodiscard]] CharSink* sink() const { return sink_; }

 private:
  CharSink* sink_ = nullptr;
  std::string output_;
  std::string pending_;
  uint64_t write_count_ = 0;
  uint64_t resume_count_ = 0;
};

}  // namespace tandem::devices
