// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "vmm/lib/checked_range/checked_range.hpp"
#include "vmm/lib/guest_memory/dirty_bitmap.hpp"

namespace tandem {

/// The guest named bytes that are not all in its RAM: a guest's mistake, so a value and no `Error`.
struct BadAddress {
  GuestAddr addr;
};

/// Copies bytes and trivially-copyable values to and from guest RAM, refusing bad ranges. Consumer side only: it does
/// not know how RAM was obtained. vCPUs run while it works: plain copies are not atomic, `load`/`store` are.
///
/// KVM's dirty log does not see what the host writes, so it is marked here: by all that write to it, and by
/// `mark_written` for what was written through `writable`.
/// @thread  any.
class GuestMemory {
 public:
  struct Region {
    GuestRange range;
    std::span<std::byte> host;
  };

  /// @pre regions do not overlap, and each `host` is as long as its `range`.
  explicit GuestMemory(std::vector<Region> regions) : regions_(std::move(regions)) {}

  [[nodiscard]] std::span<const Region> regions() const { return regions_; }

  /// Copies `out.size()` bytes from guest RAM at `src`; may cross regions.
  [[nodiscard]] std::expected<void, BadAddress> read(GuestAddr src, std::span<std::byte> out) const;

  /// Copies `bytes` to guest RAM at `dst`; may cross regions. Nothing is written when a byte lies outside RAM.
  [[nodiscard]] std::expected<void, BadAddress> write(GuestAddr dst, std::span<const std::byte> bytes) const;

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::expected<T, BadAddress> read_value(GuestAddr src) const {
    T value;
    if (const auto done = read(src, std::as_writable_bytes(std::span(&value, 1))); !done) {
      return std::unexpected(done.error());
    }
    return value;
  }

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::expected<void, BadAddress> write_value(GuestAddr dst, const T& value) const {
    return write(dst, std::as_bytes(std::span(&value, 1)));
  }

  /// Single-copy-atomic load of a naturally aligned value.
  template <std::unsigned_integral T>
  [[nodiscard]] std::expected<T, BadAddress> load(GuestAddr addr, std::memory_order order) const {
    const auto place = aligned_place(addr, sizeof(T));
    if (!place) {
      return std::unexpected(place.error());
    }
    return std::atomic_ref(*reinterpret_cast<T*>(*place)).load(order);
  }

  /// Single-copy-atomic store of a naturally aligned value.
  template <std::unsigned_integral T>
  [[nodiscard]] std::expected<void, BadAddress> store(GuestAddr addr, T value, std::memory_order order) const {
    const auto place = aligned_place(addr, sizeof(T));
    if (!place) {
      return std::unexpected(place.error());
    }
    std::atomic_ref(*reinterpret_cast<T*>(*place)).store(value, order);
    mark_written({*place, sizeof(T)});
    return {};
  }

  /// The bytes of `range` for reading by the host (a write to a file, say), if one region holds them all.
  [[nodiscard]] std::optional<std::span<const std::byte>> readable(GuestRange range) const { return host(range); }

  /// The bytes of `range` for writing by the host (a read from a file, say), if one region holds them all. Whoever writes
  /// there calls `mark_written` afterwards.
  [[nodiscard]] std::optional<std::span<std::byte>> writable(GuestRange range) const { return host(range); }

  /// From now on marks what the host writes in `log`; nowhere if it is null. Of a write that is under way on another thread
  /// this much is certain: it is marked, or whoever reads RAM after the call sees it.
  /// @pre `log` outlives all writers, even when it is not in use any more.
  void log_writes(DirtyBitmap* log);
  /// Whether writes are marked.
  [[nodiscard]] bool logs_writes() const { return active_log() != nullptr; }
  /// Says that the host has written, or is to be taken to have written, `written`.
  void mark_written(GuestRange written) const {
    if (DirtyBitmap* const log = active_log()) {
      log->mark(written);
    }
  }
  /// As above. @pre `written` comes from `writable`.
  void mark_written(std::span<const std::byte> written) const;

 private:
  /// The fence pairs with that of `log_writes`: it orders our write before our look at the log.
  [[nodiscard]] DirtyBitmap* active_log() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return log_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::optional<std::span<std::byte>> host(GuestRange range) const;
  [[nodiscard]] std::expected<std::byte*, BadAddress> aligned_place(GuestAddr addr, size_t size_bytes) const;
  /// Calls `copy(host bytes, offset into the access)` for each piece of the access, after all of it was checked.
  template <typename Copy>
  [[nodiscard]] std::expected<void, BadAddress> for_each_piece(GuestAddr addr, size_t size_bytes, Copy copy) const;
  [[nodiscard]] const Region* region_of(GuestAddr addr) const;

  std::vector<Region> regions_;
  std::atomic<DirtyBitmap*> log_ = nullptr;
};

}  // namespace tandem
