// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "vmm/lib/checked_range/checked_range.hpp"

namespace tandem::devices {

/// Turns the 4 KiB pages that a driver names into whole pages of the host.
///
/// Where the host's pages are larger, one may be given back only when the driver has given all the 4 KiB pages in it;
/// until then this remembers which. That takes at most one entry for each host page of guest RAM. Where the host's
/// pages are 4 KiB there is nothing to remember.
class BalloonedPages {
 public:
  /// @pre host_page_bytes is a power of two from 4 KiB to 64 KiB.
  explicit BalloonedPages(uint64_t host_page_bytes);

  /// The driver has given `pages`: numbers of 4 KiB pages, ascending, none twice.
  /// @return host pages that may be discarded, adjacent ones as one range.
  [[nodiscard]] std::vector<GuestRange> inflate(std::span<const uint32_t> pages);

  /// The driver has taken `pages` back.
  void deflate(std::span<const uint32_t> pages);

  /// The driver may use any page again.
  void clear() { given_.clear(); }

 private:
  struct Place {
    uint64_t host_page;
    uint16_t mask;
  };
  [[nodiscard]] Place place_of(uint32_t page) const;

  uint64_t host_page_bytes_;
  unsigned pages_per_host_page_;
  std::unordered_map<uint64_t, uint16_t> given_;  // by number of the host page: one bit for each 4 KiB page in it
};

}  // namespace tandem::devices
