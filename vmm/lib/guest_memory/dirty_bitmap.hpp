// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/lib/checked_range/checked_range.hpp"

namespace tandem {

/// Neighbouring host pages of a range of guest RAM, by their index in it.
struct PageRun {
  size_t first;
  size_t count;
  bool operator==(const PageRun&) const = default;
};

/// Which host pages of a range of guest RAM were written: one bit each.
///
/// Whoever writes marks after the write; whoever harvests copies the pages after the harvest. Marking releases and harvesting
/// acquires, so a write is either in the copy, or marked again for the next harvest.
/// @thread  any, all at once; `count` and `next_run` of a bitmap that is being marked tell of some moment.
class DirtyBitmap {
 public:
  /// No page is marked. @pre page_bytes is a power of two; `range` consists of whole pages.
  DirtyBitmap(GuestRange range, size_t page_bytes);

  [[nodiscard]] GuestRange range() const { return range_; }
  [[nodiscard]] size_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] size_t page_count() const { return page_count_; }

  /// Marks all pages that `written` touches; the part of it outside `range()` does not count.
  void mark(GuestRange written);
  /// @pre run.first + run.count <= page_count().
  void mark(PageRun run);
  void mark_all();
  /// Marks page `first_page + n` for each bit n that is set in `bits`, as KVM's dirty log has them; bits past the end are ignored.
  /// @pre first_page is a multiple of 64.
  void mark_bits(size_t first_page, std::span<const uint64_t> bits);
  /// Unmarks all pages.
  void clear();
  /// Unmarks the pages of `run`. @pre run.first + run.count <= page_count().
  void clear(PageRun run);

  /// Moves all marks to `into`. @pre both have the same range and page size.
  void harvest(DirtyBitmap& into);
  /// Marks here what is marked in `other`. @pre as for `harvest`.
  void merge(const DirtyBitmap& other);

  /// @pre page < page_count().
  [[nodiscard]] bool is_marked(size_t page) const;
  /// How many pages are marked.
  [[nodiscard]] size_t count() const;
  /// The next marked pages from `from_page` on, at most `max_pages` of them; nothing when there are none.
  [[nodiscard]] std::optional<PageRun> next_run(size_t from_page, size_t max_pages = SIZE_MAX) const;

 private:
  using Word = std::atomic<uint64_t>;
  /// Calls `change(word, mask)` for each word that has pages of `run`.
  template <typename Change>
  void for_each_word(PageRun run, Change change);
  void expect_same_shape(const DirtyBitmap& other) const;
  /// The first page from `from_page` on whose mark is `marked`; page_count() when there is none.
  [[nodiscard]] size_t find(size_t from_page, bool marked) const;

  GuestRange range_;
  size_t page_bytes_;
  size_t page_count_;
  std::vector<Word> words_;
};

}  // namespace tandem
