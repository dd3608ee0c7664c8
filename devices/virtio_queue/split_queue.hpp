// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/lib/guest_memory/guest_memory.hpp"

namespace tandem::devices {

/// Feature bits of rings and transports. (virtio 1.2, "Reserved Feature Bits")
inline constexpr uint64_t kVirtioFIndirectDesc = uint64_t{1} << 28;
inline constexpr uint64_t kVirtioFEventIdx = uint64_t{1} << 29;
inline constexpr uint64_t kVirtioFVersion1 = uint64_t{1} << 32;

/// Longest queue that any device offers.
inline constexpr uint16_t kMaxQueueSize = 1024;

/// How a driver can break a ring. The device answers with VirtioTransport::set_needs_reset.
enum class RingFault : uint8_t {
  kAddress,      ///< Ring, table or buffer outside guest RAM, or misaligned.
  kAvailIndex,   ///< More buffers made available than the queue has.
  kDescriptor,   ///< Index outside the table, or an impossible number of descriptors.
  kChainLength,  ///< Loop, or more descriptors than the table has.
  kIndirect,     ///< Indirect table not negotiated, nested, of an impossible length, or with NEXT beside it.
  kOrder,        ///< Device-readable descriptor after a device-writable one.
  kTooLong,      ///< Buffers of more than 4 GiB in all.
};
[[nodiscard]] std::string_view text_of(RingFault fault);

/// One buffer that the driver made available: host views of its device-readable part, then of its device-writable part.
/// Move-only, so that it is returned to the driver once.
class DescriptorChain {
 public:
  /// The pieces of one buffer, in the driver's order; none is empty.
  struct Pieces {
    std::vector<std::span<const std::byte>> readable;
    std::vector<std::span<std::byte>> writable;
  };

  DescriptorChain(uint16_t head, Pieces pieces);
  DescriptorChain(DescriptorChain&&) = default;
  DescriptorChain& operator=(DescriptorChain&&) = default;
  DescriptorChain(const DescriptorChain&) = delete;
  DescriptorChain& operator=(const DescriptorChain&) = delete;
  ~DescriptorChain() = default;

  [[nodiscard]] uint16_t head() const { return head_; }
  [[nodiscard]] std::span<const std::span<const std::byte>> readable() const { return pieces_.readable; }
  [[nodiscard]] std::span<const std::span<std::byte>> writable() const { return pieces_.writable; }
  [[nodiscard]] uint64_t readable_size() const { return readable_size_; }
  [[nodiscard]] uint64_t writable_size() const { return writable_size_; }

  /// Copies from the device-readable part, from byte `offset` on. @return bytes copied: fewer when the part ends.
  /// The guest may change the bytes at any time: copy what is to be checked, and check the copy.
  [[nodiscard]] size_t read(uint64_t offset, std::span<std::byte> out) const;
  /// Copies into the device-writable part, from byte `offset` on. @return bytes copied: fewer when the part ends.
  size_t write(uint64_t offset, std::span<const std::byte> bytes);

 private:
  friend class SplitQueue;

  uint16_t head_;
  Pieces pieces_;
  uint64_t readable_size_ = 0;
  uint64_t writable_size_ = 0;
};

/// The device's side of one split virtqueue, with indirect descriptors and event index.
///
/// ```
/// while (true) {
///   auto chain = queue.pop_or_rearm();
///   if (!chain) { transport.set_needs_reset(text_of(chain.error())); return; }
///   if (!*chain) { break; }
///   … queue.push(std::move(**chain), written_bytes);
/// }
/// if (queue.should_notify()) transport.notify_used(index);
/// ```
///
/// Departures from the specification, all towards the driver: a buffer may have empty pieces, which are skipped, and an
/// indirect table may be longer than the queue (Linux shrinks a ring when memory is short, but not its requests), up to
/// kMaxQueueSize. A ring, table or piece must lie in one region of guest RAM.
/// @thread  one at a time; the driver's vCPUs run meanwhile.
/// @spec    virtio 1.2, "Split Virtqueues"
class SplitQueue {
 public:
  /// What the driver has set up, and how far the device has come; saved state.
  struct State {
    uint16_t size = 0;  ///< Number of descriptors: a power of two, or 0 before set-up.
    bool ready = false;
    uint64_t desc_addr = 0;    ///< Descriptor table.
    uint64_t driver_addr = 0;  ///< Available ring.
    uint64_t device_addr = 0;  ///< Used ring.
    uint16_t next_avail = 0;   ///< Free-running index of the next available entry.
    uint16_t next_used = 0;    ///< Free-running index of the next used entry.
    bool operator==(const State&) const = default;
  };

  /// @pre max_size is a power of two, at most kMaxQueueSize; `memory` outlives the queue.
  SplitQueue(const GuestMemory& memory, uint16_t max_size) : memory_(&memory), max_size_(max_size) {}

  [[nodiscard]] uint16_t max_size() const { return max_size_; }
  [[nodiscard]] bool is_ready() const { return state_.ready; }
  [[nodiscard]] const State& state() const { return state_; }
  /// How many buffers were popped and not pushed or put back yet; never more than the queue's size.
  [[nodiscard]] uint16_t in_flight() const { return static_cast<uint16_t>(state_.next_avail - state_.next_used); }

  /// Takes the driver's set-up, or restored state, into use. A state that is not ready is the same as `reset`.
  /// @param features  negotiated: kVirtioFIndirectDesc and kVirtioFEventIdx matter here.
  /// @errors  kAddress: a ring is misaligned or not in RAM; kDescriptor: the size is not a power of two within
  /// max_size;
  ///          kAvailIndex: more in flight than the size. The queue is then not ready.
  [[nodiscard]] std::expected<void, RingFault> configure(const State& state, uint64_t features);
  /// Back to "not set up".
  void reset();

  /// The next available buffer; nothing when there is none. Never blocks, never returns a buffer twice.
  [[nodiscard]] std::expected<std::optional<DescriptorChain>, RingFault> pop();

  /// As `pop`; when there is none, the driver rings the doorbell for the next one.
  [[nodiscard]] std::expected<std::optional<DescriptorChain>, RingFault> pop_or_rearm();

  /// Puts back a buffer as if it had not been popped. Until the driver makes more available, `enable_notifications`
  /// does not count it: a device that waits for more buffers than there are does not spin.
  /// @pre `chain` was popped last of all, or just before the one put back last; nothing was written to it.
  void undo_pop(DescriptorChain chain);

  /// Returns a buffer to the driver; drops it when the queue was reset since. Its device-writable part counts as written to
  /// guest RAM (GuestMemory::mark_written), however little the driver is told of.
  /// @param written_bytes  bytes written to its device-writable part, from its start.
  void push(DescriptorChain chain, uint32_t written_bytes);
  /// A buffer to be returned, and how many bytes were written to it.
  struct Filled {
    DescriptorChain chain;
    uint32_t written_bytes;
  };
  /// Returns buffers that together hold one thing: the driver sees none of them before it can see all.
  void push_together(std::span<Filled> buffers);

  /// Whether the driver wants an interrupt for what was pushed since the last call.
  [[nodiscard]] bool should_notify();

  /// Asks the driver for no doorbells while the device polls the ring anyway.
  void disable_notifications();
  /// Asks for doorbells again. @return true when buffers came in since the last `pop`: poll once more.
  [[nodiscard]] bool enable_notifications();

 private:
  /// Host addresses of the rings, valid while the queue is ready.
  struct Rings {
    const std::byte* descriptors = nullptr;
    uint16_t* avail = nullptr;  // flags, idx, ring[size], used_event
    std::byte* used = nullptr;  // flags, idx, ring[size] of 8 bytes, avail_event
  };
  struct Table;

  [[nodiscard]] std::expected<Rings, RingFault> locate(const State& state) const;
  [[nodiscard]] std::expected<void, RingFault> collect(uint16_t head, DescriptorChain::Pieces& pieces) const;
  [[nodiscard]] std::expected<Table, RingFault> indirect_table(uint64_t addr, uint32_t size_bytes) const;
  [[nodiscard]] DescriptorChain::Pieces take_spare();
  void keep_spare(DescriptorChain::Pieces pieces);
  void give_back(DescriptorChain chain, uint32_t written_bytes);
  void publish_used();
  [[nodiscard]] uint16_t avail_index() const;
  [[nodiscard]] uint16_t used_event() const;
  void set_used_flags(uint16_t flags);
  void set_avail_event(uint16_t index);
  /// Says that the device has written to the used ring.
  void mark_used_ring() const;

  // Fixed configuration
  const GuestMemory* memory_;
  uint16_t max_size_;
  // Negotiated
  bool event_idx_ = false;
  bool indirect_ = false;
  // Progress
  State state_;
  Rings rings_;
  uint16_t seen_avail_ = 0;   // the driver's index at the last pop
  uint32_t unsignalled_ = 0;  // pushes since should_notify was asked last
  bool interrupt_next_ =
      false;  // after set-up or restore it is unknown what the driver was told: interrupt for the first push
  // Memory of returned chains, so that a busy queue does not allocate.
  std::vector<DescriptorChain::Pieces> spares_;
};

}  // namespace tandem::devices
