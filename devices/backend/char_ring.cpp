// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_ring.hpp"

#include <algorithm>

#include "vmm/lib/result/result.hpp"

namespace tandem::devices {

size_t CharRing::append(std::span<const std::byte> bytes) {
  const size_t taken = std::min(bytes.size(), capacity_ - unsent_bytes());
  const size_t free = capacity_ - size_;
  drop_oldest(taken > free ? taken - free : 0);
  store(bytes.first(taken));
  return bytes.size() - taken;
}

void CharRing::append_over_oldest(std::span<const std::byte> bytes) {
  bytes = bytes.last(std::min(bytes.size(), capacity_));
  const size_t free = capacity_ - size_;
  drop_oldest(bytes.size() > free ? bytes.size() - free : 0);
  store(bytes);
}

std::span<const std::byte> CharRing::unsent() const {
  if (unsent_bytes() == 0) {
    return {};
  }
  const size_t first = (start_ + sent_) % buffer_.size();
  return std::span(buffer_).subspan(first, std::min(unsent_bytes(), buffer_.size() - first));
}

void CharRing::mark_sent(size_t count) {
  TANDEM_ASSERT(count <= unsent_bytes(), "only what was there can have been sent");
  sent_ += count;
  if (history_ == History::kForget) {
    drop_oldest(sent_);
  }
}

void CharRing::drop_oldest(size_t count) {
  if (count == 0) {
    return;
  }
  start_ = (start_ + count) % buffer_.size();
  size_ -= count;
  sent_ -= std::min(sent_, count);
  if (size_ == 0) {
    buffer_ = {};
    start_ = 0;
  }
}

void CharRing::reserve(size_t size) {
  if (size <= buffer_.size()) {
    return;
  }
  constexpr size_t kLeastBytes = 1024;
  std::vector<std::byte> larger(std::min(capacity_, std::max({kLeastBytes, size, 2 * buffer_.size()})));
  for (size_t index = 0; index < size_; ++index) {
    larger[index] = buffer_[(start_ + index) % buffer_.size()];
  }
  buffer_ = std::move(larger);
  start_ = 0;
}

void CharRing::store(std::span<const std::byte> bytes) {
  reserve(size_ + bytes.size());
  while (!bytes.empty()) {
    const size_t place = (start_ + size_) % buffer_.size();
    const size_t count = std::min(bytes.size(), buffer_.size() - place);
    std::ranges::copy(bytes.first(count), buffer_.begin() + static_cast<std::ptrdiff_t>(place));
    size_ += count;
    bytes = bytes.subspan(count);
  }
}

}  // namespace tandem::devices
