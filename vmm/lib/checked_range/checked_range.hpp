// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace tandem {

/// A guest-physical address (Arm: IPA; KVM: gpa); cannot be mixed up with host pointers or offsets.
class GuestAddr {
 public:
  constexpr GuestAddr() = default;
  constexpr explicit GuestAddr(uint64_t value) : value_(value) {}
  [[nodiscard]] constexpr uint64_t value() const { return value_; }
  constexpr auto operator<=>(const GuestAddr&) const = default;

  /// The address `offset` bytes further, or nothing when that wraps.
  [[nodiscard]] constexpr std::optional<GuestAddr> plus(uint64_t offset) const {
    return offset > UINT64_MAX - value_ ? std::nullopt : std::optional(GuestAddr(value_ + offset));
  }

 private:
  uint64_t value_ = 0;
};

/// A non-empty, non-wrapping run of guest-physical bytes; it may end at 2^64 - 1.
/// The only code that does base + length arithmetic.
class GuestRange {
 public:
  /// Nothing when `size_bytes` is 0 or the range would wrap.
  static constexpr std::optional<GuestRange> create(GuestAddr base, uint64_t size_bytes) {
    if (size_bytes == 0 || size_bytes - 1 > UINT64_MAX - base.value()) {
      return std::nullopt;
    }
    return GuestRange(base, size_bytes);
  }

  /// For ranges known when the program is compiled; an impossible one does not compile.
  static consteval GuestRange fixed(uint64_t base, uint64_t size_bytes) {
    return create(GuestAddr(base), size_bytes).value();
  }

  [[nodiscard]] constexpr GuestAddr base() const { return base_; }
  [[nodiscard]] constexpr uint64_t size() const { return size_bytes_; }
  /// Address of the last byte.
  [[nodiscard]] constexpr GuestAddr last() const { return GuestAddr(base_.value() + (size_bytes_ - 1)); }

  [[nodiscard]] constexpr bool contains(GuestAddr addr) const { return base_ <= addr && addr <= last(); }
  [[nodiscard]] constexpr bool contains(const GuestRange& other) const {
    return base_ <= other.base_ && other.last() <= last();
  }
  [[nodiscard]] constexpr bool overlaps(const GuestRange& other) const {
    return base_ <= other.last() && other.base_ <= last();
  }
  /// Distance of `addr` from the base. @pre contains(addr).
  [[nodiscard]] constexpr uint64_t offset_of(GuestAddr addr) const { return addr.value() - base_.value(); }

  constexpr bool operator==(const GuestRange&) const = default;

 private:
  constexpr GuestRange(GuestAddr base, uint64_t size_bytes) : base_(base), size_bytes_(size_bytes) {}

  GuestAddr base_;
  uint64_t size_bytes_;
};

}  // namespace tandem
