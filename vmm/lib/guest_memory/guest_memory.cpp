// SPDX-License-Identifier: Apache-2.0
#include "vmm/lib/guest_memory/guest_memory.hpp"

#include <algorithm>

#include "vmm/lib/result/result.hpp"

namespace tandem {

const GuestMemory::Region* GuestMemory::region_of(GuestAddr addr) const {
  const auto it = std::ranges::find_if(regions_, [addr](const Region& region) { return region.range.contains(addr); });
  return it == regions_.end() ? nullptr : &*it;
}

std::optional<std::span<std::byte>> GuestMemory::host(GuestRange range) const {
  const Region* const region = region_of(range.base());
  if (region == nullptr || !region->range.contains(range)) {
    return std::nullopt;
  }
  return region->host.subspan(region->range.offset_of(range.base()), range.size());
}

std::expected<std::byte*, BadAddress> GuestMemory::aligned_place(GuestAddr addr, size_t size_bytes) const {
  const auto range = GuestRange::create(addr, size_bytes);
  const auto bytes = range && addr.value() % size_bytes == 0 ? host(*range) : std::nullopt;
  if (!bytes) {
    return std::unexpected(BadAddress{addr});
  }
  return bytes->data();
}

template <typename Copy>
std::expected<void, BadAddress> GuestMemory::for_each_piece(GuestAddr addr, size_t size_bytes, Copy copy) const {
  struct Piece {
    std::span<std::byte> host;
    size_t offset;
  };
  std::vector<Piece> pieces;
  for (size_t offset = 0; offset < size_bytes;) {
    const auto at = addr.plus(offset);
    const Region* const region = at ? region_of(*at) : nullptr;
    if (region == nullptr) {
      return std::unexpected(BadAddress{addr});
    }
    const auto rest = region->host.subspan(region->range.offset_of(*at));
    pieces.push_back({rest.first(std::min(rest.size(), size_bytes - offset)), offset});
    offset += pieces.back().host.size();
  }
  for (const Piece& piece : pieces) {
    copy(piece.host, piece.offset);
  }
  return {};
}

std::expected<void, BadAddress> GuestMemory::read(GuestAddr src, std::span<std::byte> out) const {
  if (const auto range = GuestRange::create(src, out.size())) {
    if (const auto bytes = host(*range)) {  // nearly always: all in one region
      std::memcpy(out.data(), bytes->data(), out.size());
      return {};
    }
  }
  return for_each_piece(src, out.size(), [out](std::span<std::byte> host_bytes, size_t offset) {
    std::memcpy(out.data() + offset, host_bytes.data(), host_bytes.size());
  });
}

std::expected<void, BadAddress> GuestMemory::write(GuestAddr dst, std::span<const std::byte> bytes) const {
  const auto range = GuestRange::create(dst, bytes.size());
  if (!range) {
    return bytes.empty() ? std::expected<void, BadAddress>() : std::unexpected(BadAddress{dst});
  }
  if (const auto place = host(*range)) {
    std::memcpy(place->data(), bytes.data(), bytes.size());
  } else {
    TANDEM_TRY(for_each_piece(dst, bytes.size(), [bytes](std::span<std::byte> host_bytes, size_t offset) {
      std::memcpy(host_bytes.data(), bytes.data() + offset, host_bytes.size());
    }));
  }
  mark_written(*range);
  return {};
}

void GuestMemory::log_writes(DirtyBitmap* log) {
  log_.store(log, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void GuestMemory::mark_written(std::span<const std::byte> written) const {
  DirtyBitmap* const log = active_log();
  if (log == nullptr || written.empty()) {
    return;
  }
  const std::byte* const start = written.data();
  const auto region = std::ranges::find_if(regions_, [start](const Region& candidate) {
    return candidate.host.data() <= start && start < candidate.host.data() + candidate.host.size();
  });
  TANDEM_ASSERT(region != regions_.end(), "host views of guest RAM come from one of its regions");
  const auto addr = region->range.base().plus(static_cast<uint64_t>(start - region->host.data()));
  log->mark(GuestRange::create(*addr, written.size()).value());
}

}  // namespace tandem
