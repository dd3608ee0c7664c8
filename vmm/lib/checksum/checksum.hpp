// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace tandem {

/// 128 bits that differ when the bytes they were made from do. They find damage and mix-ups; they are no protection
/// against somebody who makes bytes to fit.
/// @spec  xxHash 0.8, XXH3_128bits without a seed.
struct Checksum {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Checksum&) const = default;

  static constexpr size_t kBytes = 16;
  static constexpr size_t kTextLength = 2 * kBytes;

  /// The canonical form of the algorithm's authors: most significant byte first.
  [[nodiscard]] std::array<std::byte, kBytes> bytes() const;
  static Checksum from_bytes(std::span<const std::byte, kBytes> bytes);

  /// `bytes()` in lower-case hexadecimal digits, as xxh128sum(1) prints it.
  [[nodiscard]] std::string text() const;
  /// Nothing for all but what `text()` makes.
  static std::optional<Checksum> from_text(std::string_view text);
};

/// The checksum of `bytes`.
Checksum checksum_of(std::span<const std::byte> bytes);

/// Makes the checksum of bytes that come in pieces.
class ChecksumStream {
 public:
  ChecksumStream();

  void append(std::span<const std::byte> bytes);
  /// Of all that was appended so far.
  [[nodiscard]] Checksum checksum() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace tandem
