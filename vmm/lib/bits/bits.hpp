// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <bit>

/// Bit fields, alignment, and little-endian values in byte buffers.
namespace tandem {

static_assert(std::endian::native == std::endian::little, "guest structures are accessed as little-endian host values");

template <std::unsigned_integral T>
[[nodiscard]] constexpr T bit(unsigned index) {
  return static_cast<T>(T{1} << index);
}

/// Bits `high`..`low` of `value`, moved down to bit 0.
[[nodiscard]] constexpr uint64_t bit_field(uint64_t value, unsigned high, unsigned low) {
  const unsigned width = high - low + 1;
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return (value >> low) & mask;
}

/// The low `width_bytes` bytes of `value`. @pre width_bytes is 1, 2, 4 or 8.
[[nodiscard]] constexpr uint64_t low_bytes(uint64_t value, unsigned width_bytes) {
  return width_bytes >= 8 ? value : value & ((uint64_t{1} << (8 * width_bytes)) - 1);
}

/// @pre alignment is a power of two.
[[nodiscard]] constexpr uint64_t align_down(uint64_t value, uint64_t alignment) { return value & ~(alignment - 1); }

/// @pre alignment is a power of two, and value + alignment - 1 does not wrap.
[[nodiscard]] constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return align_down(value + alignment - 1, alignment);
}

[[nodiscard]] constexpr bool is_aligned(uint64_t value, uint64_t alignment) { return (value & (alignment - 1)) == 0; }

/// The little-endian value at the start of `bytes`. @pre bytes.size() >= sizeof(T).
template <std::integral T>
[[nodiscard]] T load_le(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Copies `from` to the start of `to`; they may overlap. For memory of any size: std::ranges::copy of bytes is a loop that takes
/// one at a time, here. @pre to.size() >= from.size().
inline void copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) {
    std::memmove(to.data(), from.data(), from.size());
  }
}

/// Makes all of `bytes` zero; for memory of any size, as above.
inline void zero_bytes(std::span<std::byte> bytes) {
  if (!bytes.empty()) {
    std::memset(bytes.data(), 0, bytes.size());
  }
}

/// Writes `value` at the start of `bytes`. @pre bytes.size() >= sizeof(T).
template <std::integral T>
void store_le(std::span<std::byte> bytes, T value) {
  std::memcpy(bytes.data(), &value, sizeof value);
}

}  // namespace tandem
