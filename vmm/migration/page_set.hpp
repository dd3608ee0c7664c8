// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tandem::migration {

/// Some of the pages of a guest's RAM: those that a difference holds.
class PageSet {
 public:
  /// Bytes of RAM that follow each other.
  struct Run {
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    bool operator==(const Run&) const = default;
  };

  /// No page. @pre page_bytes is a power of two and divides ram_bytes.
  PageSet(uint64_t ram_bytes, uint64_t page_bytes);
  /// The pages whose bits are set, lowest bit first. @pre bits.size() == bitmap_bytes(ram_bytes, page_bytes).
  static PageSet from_bitmap(uint64_t ram_bytes, uint64_t page_bytes, std::span<const std::byte> bits);

  [[nodiscard]] static uint64_t bitmap_bytes(uint64_t ram_bytes, uint64_t page_bytes) {
    return (ram_bytes / page_bytes + 7) / 8;
  }

  [[nodiscard]] uint64_t ram_bytes() const { return ram_bytes_; }
  [[nodiscard]] uint64_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] uint64_t count() const;
  /// @pre page < ram_bytes() / page_bytes().
  [[nodiscard]] bool has(uint64_t page) const;

  /// Takes `count` pages from `first` on into the set. @pre they are pages of the RAM.
  void add(uint64_t first, uint64_t count = 1);

  /// The first pages of the set in `within`, as one run; nothing if there are none.
  /// @pre within consists of whole pages of the RAM.
  [[nodiscard]] std::optional<Run> first_run(Run within) const;

  [[nodiscard]] std::span<const std::byte> bitmap() const { return bits_; }
  bool operator==(const PageSet&) const = default;

 private:
  uint64_t ram_bytes_;
  uint64_t page_bytes_;
  std::vector<std::byte> bits_;
};

}  // namespace tandem::migration
