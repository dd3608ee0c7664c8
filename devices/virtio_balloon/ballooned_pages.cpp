// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_balloon/ballooned_pages.hpp"

#include <bit>

#include "devices/virtio_balloon/virtio_balloon_regs.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {
namespace {

/// Appends one host page, as part of the last range where they touch. @pre host pages come in ascending order.
void append_page(std::vector<GuestRange>& ranges, uint64_t addr, uint64_t size_bytes) {
  const GuestRange page = GuestRange::create(GuestAddr(addr), size_bytes).value();  // 32-bit page numbers cannot wrap
  if (!ranges.empty() && ranges.back().contains(page)) {
    return;
  }
  if (!ranges.empty() && ranges.back().last().plus(1) == page.base()) {
    ranges.back() = GuestRange::create(ranges.back().base(), ranges.back().size() + size_bytes).value();
    return;
  }
  ranges.push_back(page);
}

}  // namespace

BalloonedPages::BalloonedPages(uint64_t host_page_bytes)
    : host_page_bytes_(host_page_bytes),
      pages_per_host_page_(static_cast<unsigned>(host_page_bytes / virtio_balloon::kPageBytes)) {
  TANDEM_ASSERT(std::has_single_bit(host_page_bytes) && pages_per_host_page_ >= 1 && pages_per_host_page_ <= 16,
                "Arm has pages of 4, 16 and 64 KiB");
}

std::vector<GuestRange> BalloonedPages::inflate(std::span<const uint32_t> pages) {
  std::vector<GuestRange> complete;
  const auto all = static_cast<uint16_t>((1U << pages_per_host_page_) - 1);
  for (const uint32_t page : pages) {
    const auto [host_page, mask] = place_of(page);
    if (mask == all) {
      append_page(complete, host_page * host_page_bytes_, host_page_bytes_);
      continue;
    }
    uint16_t& given = given_[host_page];
    given |= mask;
    if (given == all) {
      append_page(complete, host_page * host_page_bytes_, host_page_bytes_);
    }
  }
  return complete;
}

void BalloonedPages::deflate(std::span<const uint32_t> pages) {
  for (const uint32_t page : pages) {
    const auto [host_page, mask] = place_of(page);
    const auto given = given_.find(host_page);
    if (given == given_.end()) {
      continue;
    }
    given->second = static_cast<uint16_t>(given->second & ~mask);
    if (given->second == 0) {
      given_.erase(given);
    }
  }
}

BalloonedPages::Place BalloonedPages::place_of(uint32_t page) const {
  return {.host_page = page / pages_per_host_page_, .mask = static_cast<uint16_t>(1U << (page % pages_per_host_page_))};
}

}  // namespace tandem::devices
