// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tandem::devices {

/// A bounded queue of output: bytes that are yet to be sent and, if history is kept, the last ones that were.
/// Memory is taken as it is needed, up to the capacity.
class CharRing {
 public:
  enum class History : bool { kForget, kKeep };

  CharRing(size_t capacity_bytes, History history) : capacity_(capacity_bytes), history_(history) {}

  /// Appends as much as fits beside what is yet to be sent. @return number of bytes left out, the newest.
  size_t append(std::span<const std::byte> bytes);
  /// Appends all; the oldest bytes make room, sent or not.
  void append_over_oldest(std::span<const std::byte> bytes);

  /// The next bytes to be sent: as many as lie in one piece. Empty only if there are none.
  [[nodiscard]] std::span<const std::byte> unsent() const;
  [[nodiscard]] size_t unsent_bytes() const { return size_ - sent_; }
  /// @pre count <= unsent_bytes().
  void mark_sent(size_t count);
  /// Everything that is kept is to be sent again.
  void rewind() { sent_ = 0; }

 private:
  void drop_oldest(size_t count);
  void reserve(size_t size);
  void store(std::span<const std::byte> bytes);

  size_t capacity_;
  History history_;
  std::vector<std::byte> buffer_;
  size_t start_ = 0;  // place of the oldest byte
  size_t size_ = 0;   // bytes kept
  size_t sent_ = 0;   // how many of these, from the oldest on, were sent
};

}  // namespace tandem::devices
