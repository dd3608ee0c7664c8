// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace tandem::fuzz {

/// Takes values from a fuzzer's input, one after the other; zeros when it is used up.
class InputReader {
 public:
  InputReader(const uint8_t* bytes, size_t size) : rest_(std::as_bytes(std::span(bytes, size))) {}

  [[nodiscard]] bool is_empty() const { return rest_.empty(); }
  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  T take() {
    T value{};
    const size_t count = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), count);
    rest_ = rest_.subspan(count);
    return value;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace tandem::fuzz
