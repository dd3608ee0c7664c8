// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "devices/backend/char_backend.hpp"

namespace tandem::devices {

/// A device that takes input up to a room which the test sets.
class FakeCharSink final : public CharSink {
 public:
  [[nodiscard]] size_t room() const override { return room_; }
  void receive(std::span<const std::byte> bytes) override {
    received_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    room_ -= bytes.size();
  }

  void set_room(size_t room) { room_ = room; }
  [[nodiscard]] const std::string& received() const { return received_; }

 private:
  size_t room_ = SIZE_MAX;
  std::string received_;
};

}  // namespace tandem::devices
