// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "devices/virtio_queue/split_queue.hpp"
#include "tests/fakes/fake_ram.hpp"

namespace tandem::devices {

inline constexpr uint16_t kDescNext = 1;
inline constexpr uint16_t kDescWrite = 2;
inline constexpr uint16_t kDescIndirect = 4;

/// The driver's side of one split virtqueue.
///
/// ```
/// GuestQueue queue(ram, 8);
/// const GuestChain request = queue.chain().readable(header).writable(512).writable(1).submit();
/// … the device works …
/// const auto used = queue.take_used();   // used->head == request.head
/// request.writable[0] …                  // where the device wrote
/// ```
/// `set_descriptor`, `offer` and the setters of ring fields let a test break every rule.
/// @spec  virtio 1.2, "Split Virtqueues"
class GuestQueue {
 public:
  struct Descriptor {
    uint64_t addr = 0;
    uint32_t len = 0;
    uint16_t flags = 0;
    uint16_t next = 0;
  };
  /// A buffer that was made available.
  struct GuestChain {
    uint16_t head = 0;
    std::vector<GuestRange> writable;  ///< Device-writable pieces that are not empty, in order.
  };
  struct Used {
    uint16_t head;
    uint32_t len;
  };

  /// Builds one buffer; nothing reaches the device before `submit`.
  class ChainBuilder {
   public:
    /// Adds a piece that holds `bytes`, in fresh RAM.
    ChainBuilder& readable(std::span<const std::byte> bytes);
    ChainBuilder& readable(std::string_view text) { return readable(std::as_bytes(std::span(text))); }
    template <typename T>
      requires std::is_trivially_copyable_v<T> && (!std::is_convertible_v<const T&, std::string_view>) &&
               (!std::is_convertible_v<const T&, std::span<const std::byte>>)
    ChainBuilder& readable(const T& value) {
      return readable(std::as_bytes(std::span(&value, 1)));
    }
    /// Adds a piece of zeros for the device to write, in fresh RAM.
    ChainBuilder& writable(uint32_t size_bytes);
    /// Adds a piece at any address; `flags` is 0 or kDescWrite.
    ChainBuilder& piece(uint64_t addr, uint32_t size_bytes, uint16_t flags);
    /// From here on the pieces go to an indirect table.
    ChainBuilder& indirect();

    /// Writes the descriptors, and makes the buffer available.
    GuestChain submit();
    /// Writes the descriptors only. @return what `offer` takes.
    GuestChain build();

   private:
    friend class GuestQueue;
    explicit ChainBuilder(GuestQueue& queue) : queue_(&queue) {}
    GuestQueue* queue_;
    std::vector<Descriptor> pieces_;
    std::optional<size_t> first_indirect_;
  };

  /// Allocates the rings. @pre size is a power of two.
  GuestQueue(FakeRam& ram, uint16_t size);
  /// Uses rings at the addresses of `state`.
  GuestQueue(FakeRam& ram, const SplitQueue::State& state);

  /// What SplitQueue::configure is to be given for this queue: ready, nothing popped yet.
  [[nodiscard]] const SplitQueue::State& state() const { return state_; }

  [[nodiscard]] ChainBuilder chain() { return ChainBuilder(*this); }
  /// Makes the buffer that starts at descriptor `head` available.
  void offer(uint16_t head);
  /// The next buffer that the device returned; its descriptors are free again.
  std::optional<Used> take_used();

  // Ring fields as they are in RAM.
  void set_descriptor(uint16_t index, const Descriptor& descriptor);
  void set_avail_flags(uint16_t flags);
  void set_avail_index(uint16_t index);
  void set_used_event(uint16_t index);
  [[nodiscard]] uint16_t avail_index() const;
  [[nodiscard]] uint16_t used_flags() const;
  [[nodiscard]] uint16_t used_index() const;
  [[nodiscard]] uint16_t avail_event() const;

 private:
  [[nodiscard]] GuestAddr place(uint64_t ring_addr, uint64_t offset) const;
  void put16(GuestAddr addr, uint16_t value) const;
  [[nodiscard]] uint16_t get16(GuestAddr addr) const;
  uint16_t take_free_descriptor();

  FakeRam* ram_;
  SplitQueue::State state_;
  std::deque<uint16_t> free_;
  std::map<uint16_t, std::vector<uint16_t>> in_use_;  // by head: the descriptors of a submitted buffer
  uint16_t taken_used_ = 0;
};

}  // namespace tandem::devices
