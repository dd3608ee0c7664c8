// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/dirty_bitmap.hpp"

#include <algorithm>
#include <bit>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem {
namespace {

constexpr size_t kWordBits = 64;

/// Bits `low`..`end - 1`. @pre low < end <= 64.
constexpr uint64_t bits_between(size_t low, size_t end) { return (~uint64_t{0} >> (kWordBits - (end - low))) << low; }

}  // namespace

DirtyBitmap::DirtyBitmap(GuestRange range, size_t page_bytes)
    : range_(range),
      page_bytes_(page_bytes),
      page_count_(range.size() / page_bytes),
      words_((page_count_ + kWordBits - 1) / kWordBits) {
  TANDEM_ASSERT(is_aligned(range.base().value() | range.size(), page_bytes), "RAM consists of whole host pages");
}

template <typename Change>
void DirtyBitmap::for_each_word(PageRun run, Change change) {
  const size_t end = run.first + run.count;
  TANDEM_ASSERT(run.first <= end && end <= page_count_, "the run lies inside RAM");
  for (size_t page = run.first; page < end;) {
    const size_t word = page / kWordBits;
    const size_t word_end = std::min(end, (word + 1) * kWordBits);
    change(words_[word], bits_between(page % kWordBits, word_end - word * kWordBits));
    page = word_end;
  }
}

void DirtyBitmap::mark(GuestRange written) {
  if (!range_.overlaps(written)) {
    return;
  }
  const size_t first = range_.offset_of(std::max(range_.base(), written.base())) / page_bytes_;
  const size_t last = range_.offset_of(std::min(range_.last(), written.last())) / page_bytes_;
  mark(PageRun{first, last - first + 1});
}

void DirtyBitmap::mark(PageRun run) {
  for_each_word(run, [](Word& word, uint64_t mask) { word.fetch_or(mask, std::memory_order_release); });
}

void DirtyBitmap::mark_all() { mark(PageRun{0, page_count_}); }

void DirtyBitmap::mark_bits(size_t first_page, std::span<const uint64_t> bits) {
  TANDEM_ASSERT(first_page % kWordBits == 0, "the log is read in whole words");
  const size_t first_word = first_page / kWordBits;
  const size_t end = std::min(words_.size(), first_word + bits.size());
  for (size_t word = first_word; word < end; ++word) {
    const uint64_t valid = bits_between(0, std::min(kWordBits, page_count_ - word * kWordBits));
    if (const uint64_t mask = bits[word - first_word] & valid; mask != 0) {
      words_[word].fetch_or(mask, std::memory_order_release);
    }
  }
}

void DirtyBitmap::clear() { clear(PageRun{0, page_count_}); }

void DirtyBitmap::clear(PageRun run) {
  for_each_word(run, [](Word& word, uint64_t mask) { word.fetch_and(~mask, std::memory_order_acquire); });
}

void DirtyBitmap::harvest(DirtyBitmap& into) {
  expect_same_shape(into);
  for (size_t index = 0; index < words_.size(); ++index) {
    if (words_[index].load(std::memory_order_relaxed) == 0) {
      continue;
    }
    into.words_[index].fetch_or(words_[index].exchange(0, std::memory_order_acquire), std::memory_order_release);
  }
}

void DirtyBitmap::merge(const DirtyBitmap& other) {
  expect_same_shape(other);
  for (size_t index = 0; index < words_.size(); ++index) {
    if (const uint64_t marks = other.words_[index].load(std::memory_order_acquire); marks != 0) {
      words_[index].fetch_or(marks, std::memory_order_release);
    }
  }
}

void DirtyBitmap::expect_same_shape(const DirtyBitmap& other) const {
  TANDEM_ASSERT(range_ == other.range_ && page_bytes_ == other.page_bytes_, "all bitmaps of one RAM have one shape");
}

bool DirtyBitmap::is_marked(size_t page) const {
  TANDEM_ASSERT(page < page_count_, "the page lies inside RAM");
  return (words_[page / kWordBits].load(std::memory_order_acquire) >> (page % kWordBits) & 1) != 0;
}

size_t DirtyBitmap::count() const {
  size_t pages = 0;
  for (const Word& word : words_) {
    pages += static_cast<size_t>(std::popcount(word.load(std::memory_order_relaxed)));
  }
  return pages;
}

size_t DirtyBitmap::find(size_t from_page, bool marked) const {
  for (size_t page = from_page; page < page_count_;) {
    const uint64_t word = words_[page / kWordBits].load(std::memory_order_acquire);
    const uint64_t wanted = (marked ? word : ~word) >> (page % kWordBits);
    if (wanted != 0) {
      return std::min(page_count_, page + static_cast<size_t>(std::countr_zero(wanted)));
    }
    page = (page / kWordBits + 1) * kWordBits;
  }
  return page_count_;
}

std::optional<PageRun> DirtyBitmap::next_run(size_t from_page, size_t max_pages) const {
  const size_t first = find(from_page, true);
  if (first == page_count_ || max_pages == 0) {
    return std::nullopt;
  }
  const size_t end = find(first + 1, false);
  return PageRun{first, std::min(end - first, max_pages)};
}

}  // namespace tandem
