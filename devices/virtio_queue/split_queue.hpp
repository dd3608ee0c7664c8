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
  kAddress,        ///< Ring, table or buffer outside guest RAM, or misaligned.
  kAvailIndex,     ///< More buffers made available than the queue has.
  kDescriptor,     ///< Index outside the table.
  kChainLength,    ///< Loop, or more descriptors than the queue has.
  kIndirect,       ///< Indirect table not negotiated, nested, empty, too long, or with NEXT beside it.
  kOrder,          ///< Device-readable descriptor after a device-writable one.
  kTooLong,        ///< Buffers of more than 4 GiB in all.
};
[[nodiscard]] std::string_view text_of(RingFault fault);

/// One buffer that the driver made available: host views of its device-readable part, then of its device-writable part.
/// Move-only, so that it is returned to the driver once.
class DescriptorChain {
 public:
  DescriptorChain(uint16_t head, std::vector<std::span<const std::byte>> readable, std::vector<std::span<std::byte>> writable);
  DescriptorChain(DescriptorChain&&) = default;
  DescriptorChain& operator=(DescriptorChain&&) = default;
  DescriptorChain(const DescriptorChain&) = delete;
  DescriptorChain& operator=(const DescriptorChain&) = delete;
  ~DescriptorChain() = default;

  [[nodiscard]] uint16_t head() const { return head_; }
  [[nodiscard]] std::span<const std::span<const std::byte>> readable() const { return readable_; }
  [[nodiscard]] std::span<const std::span<std::byte>> writable() const { return writable_; }
  [[nodiscard]] uint64_t readable_size() const { return readable_size_; }
  [[nodiscard]] uint64_t writable_size() const { return writable_size_; }

  /// Copies from the device-readable part, from byte `offset` on. @return bytes copied: fewer when the part ends.
  /// The guest may change the bytes at any time: copy what is to be checked, and check the copy.
  [[nodiscard]] size_t read(uint64_t offset, std::span<std::byte> out) const;
  /// Copies into the device-writable part, from byte `offset` on. @return bytes copied: fewer when the part ends.
  size_t write(uint64_t offset, std::span<const std::byte> bytes);

 private:
  uint16_t head_;
  std::vector<std::span<const std::byte>> readable_;
  std::vector<std::span<std::byte>> writable_;
  uint64_t readable_size_ = 0;
  uint64_t writable_size_ = 0;
};

/// The device's side of one split virtqueue, with indirect descriptors and event index.
///
/// ```
/// while (true) {
///   auto chain = queue.pop();
///   if (!chain) { transport.set_needs_reset(); break; }
///   if (!*chain) { if (!queue.enable_notifications()) break; else continue; }   // see enable_notifications
///   … queue.push(std::move(**chain), written_bytes);
/// }
/// if (queue.should_notify()) transport.notify_used(index);
/// ```
/// @spec  virtio 1.2, "Split Virtqueues"
class SplitQueue {
 public:
  /// What the driver has set up, and how far the device has come; saved state.
  struct State {
    uint16_t size = 0;          ///< Number of descriptors: a power of two, or 0 before set-up.
    bool ready = false;
    uint64_t desc_addr = 0;     ///< Descriptor table.
    uint64_t driver_addr = 0;   ///< Available ring.
    uint64_t device_addr = 0;   ///< Used ring.
    uint16_t next_avail = 0;    ///< Free-running index of the next available entry.
    uint16_t next_used = 0;     ///< Free-running index of the next used entry.
    bool operator==(const State&) const = default;
  };

  SplitQueue(const GuestMemory& memory, uint16_t max_size) : memory_(&memory), max_size_(max_size) {}

  [[nodiscard]] uint16_t max_size() const { return max_size_; }
  [[nodiscard]] bool is_ready() const { return state_.ready; }
  [[nodiscard]] const State& state() const { return state_; }

  /// Takes the driver's set-up, or restored state, into use.
  /// @errors  kAddress: a ring is misaligned or not in RAM; kDescriptor: the size is not a power of two within max_size.
  [[nodiscard]] std::expected<void, RingFault> configure(const State& state, uint64_t features);
  /// Back to "not set up".
  void reset();

  /// The next available buffer; nothing when there is none. Never blocks, never returns a buffer twice.
  [[nodiscard]] std::expected<std::optional<DescriptorChain>, RingFault> pop();

  /// Puts back the buffer that the last `pop` returned, as if it had not been popped. @pre no push since.
  void undo_pop();

  /// Returns a buffer to the driver. @param written_bytes  bytes written to its device-writable part, from its start.
  void push(DescriptorChain chain, uint32_t written_bytes);
  /// As `push` for a buffer known by its head only (completions that outlive the chain).
  void push_head(uint16_t head, uint32_t written_bytes);

  /// Whether the driver wants an interrupt for what was pushed since the last call that said so.
  [[nodiscard]] bool should_notify();

  /// Asks the driver for no doorbells while the device polls the ring anyway.
  void disable_notifications();
  /// Asks for doorbells again. @return true when buffers came in meanwhile: poll once more.
  [[nodiscard]] bool enable_notifications();

 private:
  const GuestMemory* memory_;
  uint16_t max_size_;
  State state_;
  bool event_idx_ = false;
  bool indirect_ = false;
  uint16_t signalled_used_ = 0;       // next_used at the last interrupt
  bool signalled_used_valid_ = false;  // false after set-up or restore: the next push interrupts
};

}  // namespace tandem::devices
