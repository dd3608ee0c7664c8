// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tandem::devices {

/// Bytes in the order they came, which wait for a socket with room. Holds no memory while it is empty.
class VsockBacklog {
 public:
  [[nodiscard]] bool is_empty() const { return bytes().empty(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(store_).subspan(taken_bytes_); }

  /// Room for `size_bytes` at the end, for the caller to fill.
  [[nodiscard]] std::span<std::byte> extend(size_t size_bytes);
  /// Takes bytes away from the start. @pre there are as many.
  void drop_front(size_t size_bytes);
  void clear();

 private:
  std::vector<std::byte> store_;
  size_t taken_bytes_ = 0;
};

}  // namespace tandem::devices
