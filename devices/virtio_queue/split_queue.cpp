// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_queue/split_queue.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "vmm/lib/bits/bits.hpp"
#include "vmm/lib/result/result.hpp"

namespace tandem::devices {
namespace {

/// virtio 1.2, "The Virtqueue Descriptor Table"
struct Descriptor {
  uint64_t addr;
  uint32_t len;
  uint16_t flags;
  uint16_t next;
};
static_assert(sizeof(Descriptor) == 16);

constexpr uint16_t kDescFNext = 1;
constexpr uint16_t kDescFWrite = 2;
constexpr uint16_t kDescFIndirect = 4;

/// virtio 1.2, "The Virtqueue Available Ring" and "The Virtqueue Used Ring"
constexpr uint16_t kAvailFNoInterrupt = 1;
constexpr uint16_t kUsedFNoNotify = 1;
struct UsedElement {
  uint32_t id;
  uint32_t len;
};
constexpr size_t kUsedHeaderBytes = 4;
/// With the event field, which counts even when it is not negotiated.
constexpr uint64_t used_ring_bytes(uint16_t size) { return 6 + sizeof(UsedElement) * size; }

constexpr uint64_t kMaxChainBytes = uint64_t{1} << 32;

/// More are seldom in flight, and the longest takes 16 KiB.
constexpr size_t kMaxSpares = 16;

/// The guest writes these bytes while we read them. The fence keeps the compiler from reading them a second time, after
/// they were checked.
void copy_from_guest(void* out, const std::byte* guest, size_t size_bytes) {
  std::memcpy(out, guest, size_bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

std::atomic_ref<uint16_t> shared(uint16_t* place) { return std::atomic_ref<uint16_t>(*place); }

/// Walks `pieces` from byte `offset` on; `copy(piece, done)` moves one run of bytes. @return bytes moved.
template <typename Piece, typename Copy>
size_t for_each_run(std::span<const Piece> pieces, uint64_t offset, size_t size_bytes, Copy copy) {
  size_t done = 0;
  for (const Piece& piece : pieces) {
    if (done == size_bytes) {
      break;
    }
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const Piece run = piece.subspan(offset, std::min(piece.size() - offset, size_bytes - done));
    copy(run, done);
    done += run.size();
    offset = 0;
  }
  return done;
}

template <typename Piece>
uint64_t sum_of(const std::vector<Piece>& pieces) {
  uint64_t sum = 0;
  for (const Piece& piece : pieces) {
    sum += piece.size();
  }
  return sum;
}

/// Adds what `descriptor` describes to `pieces`.
std::expected<void, RingFault> add_piece(const GuestMemory& memory, const Descriptor& descriptor,
                                         DescriptorChain::Pieces& pieces) {
  const auto range = GuestRange::create(GuestAddr(descriptor.addr), descriptor.len);
  if (!range) {
    return descriptor.len == 0 ? std::expected<void, RingFault>() : std::unexpected(RingFault::kAddress);
  }
  if ((descriptor.flags & kDescFWrite) != 0) {
    const auto bytes = memory.writable(*range);
    if (!bytes) {
      return std::unexpected(RingFault::kAddress);
    }
    pieces.writable.push_back(*bytes);
    return {};
  }
  if (!pieces.writable.empty()) {
    return std::unexpected(RingFault::kOrder);
  }
  const auto bytes = memory.readable(*range);
  if (!bytes) {
    return std::unexpected(RingFault::kAddress);
  }
  pieces.readable.push_back(*bytes);
  return {};
}

/// Host address of a ring of `size_bytes`, aligned as the specification wants it.
std::expected<std::byte*, RingFault> ring_at(const GuestMemory& memory, uint64_t addr, uint64_t size_bytes,
                                             uint64_t alignment) {
  const auto range = GuestRange::create(GuestAddr(addr), size_bytes);
  const auto bytes = range && is_aligned(addr, alignment) ? memory.writable(*range) : std::nullopt;
  if (!bytes) {
    return std::unexpected(RingFault::kAddress);
  }
  return bytes->data();
}

}  // namespace

std::string_view text_of(RingFault fault) {
  switch (fault) {
    case RingFault::kAddress:
      return "ring or buffer outside guest RAM, or misaligned";
    case RingFault::kAvailIndex:
      return "more buffers available than the queue has";
    case RingFault::kDescriptor:
      return "descriptor index or queue size out of range";
    case RingFault::kChainLength:
      return "descriptor chain with a loop";
    case RingFault::kIndirect:
      return "bad indirect descriptor";
    case RingFault::kOrder:
      return "device-readable descriptor after a device-writable one";
    case RingFault::kTooLong:
      return "buffer of more than 4 GiB";
  }
  TANDEM_UNREACHABLE("every fault returns above");
}

DescriptorChain::DescriptorChain(uint16_t head, Pieces pieces)
    : head_(head),
      pieces_(std::move(pieces)),
      readable_size_(sum_of(pieces_.readable)),
      writable_size_(sum_of(pieces_.writable)) {}

size_t DescriptorChain::read(uint64_t offset, std::span<std::byte> out) const {
  return for_each_run(readable(), offset, out.size(), [out](std::span<const std::byte> run, size_t done) {
    copy_from_guest(out.data() + done, run.data(), run.size());
  });
}

size_t DescriptorChain::write(uint64_t offset, std::span<const std::byte> bytes) {
  return for_each_run(writable(), offset, bytes.size(), [bytes](std::span<std::byte> run, size_t done) {
    std::memcpy(run.data(), bytes.data() + done, run.size());
  });
}

/// A descriptor table: the queue's, or an indirect one (which may be misaligned).
struct SplitQueue::Table {
  const std::byte* base;
  size_t count;

  [[nodiscard]] Descriptor load(size_t index) const {
    Descriptor descriptor;
    copy_from_guest(&descriptor, base + index * sizeof descriptor, sizeof descriptor);
    return descriptor;
  }
};

std::expected<SplitQueue::Rings, RingFault> SplitQueue::locate(const State& state) const {
  if (!std::has_single_bit(state.size) || state.size > max_size_) {
    return std::unexpected(RingFault::kDescriptor);
  }
  if (static_cast<uint16_t>(state.next_avail - state.next_used) > state.size) {
    return std::unexpected(RingFault::kAvailIndex);
  }
  // Sizes and alignments: virtio 1.2, "Split Virtqueues". The event fields count even when they are not negotiated.
  const uint64_t size = state.size;
  Rings rings;
  rings.descriptors = TANDEM_TRY(ring_at(*memory_, state.desc_addr, sizeof(Descriptor) * size, 16));
  rings.avail = reinterpret_cast<uint16_t*>(TANDEM_TRY(ring_at(*memory_, state.driver_addr, 6 + 2 * size, 2)));
  rings.used = TANDEM_TRY(ring_at(*memory_, state.device_addr, used_ring_bytes(state.size), 4));
  return rings;
}

std::expected<void, RingFault> SplitQueue::configure(const State& state, uint64_t features) {
  reset();
  if (!state.ready) {
    return {};
  }
  rings_ = TANDEM_TRY(locate(state));
  state_ = state;
  indirect_ = (features & kVirtioFIndirectDesc) != 0;
  event_idx_ = (features & kVirtioFEventIdx) != 0;
  seen_avail_ = state.next_avail;
  interrupt_next_ = true;
  return {};
}

void SplitQueue::reset() {
  state_ = {};
  rings_ = {};
  seen_avail_ = 0;
  unsignalled_ = 0;
  interrupt_next_ = false;
  spares_.clear();
}

std::expected<std::optional<DescriptorChain>, RingFault> SplitQueue::pop() {
  if (!state_.ready) {
    return std::nullopt;
  }
  seen_avail_ = avail_index();
  const auto available = static_cast<uint16_t>(seen_avail_ - state_.next_avail);
  if (available == 0) {
    return std::nullopt;
  }
  if (available > state_.size - in_flight()) {
    return std::unexpected(RingFault::kAvailIndex);
  }
  const size_t slot = state_.next_avail & (state_.size - 1U);
  const uint16_t head = shared(rings_.avail + 2 + slot).load(std::memory_order_relaxed);
  DescriptorChain::Pieces pieces = take_spare();
  TANDEM_TRY(collect(head, pieces));
  ++state_.next_avail;
  return DescriptorChain(head, std::move(pieces));
}

std::expected<std::optional<DescriptorChain>, RingFault> SplitQueue::pop_or_rearm() {
  auto chain = pop();
  if (chain && !*chain && enable_notifications()) {
    chain = pop();
  }
  return chain;
}

std::expected<void, RingFault> SplitQueue::collect(uint16_t head, DescriptorChain::Pieces& pieces) const {
  Table table{.base = rings_.descriptors, .count = state_.size};
  bool in_indirect = false;
  size_t index = head;
  uint64_t total_bytes = 0;
  for (size_t left = table.count; left > 0; --left) {
    if (index >= table.count) {
      return std::unexpected(RingFault::kDescriptor);
    }
    const Descriptor descriptor = table.load(index);
    const bool has_next = (descriptor.flags & kDescFNext) != 0;
    if ((descriptor.flags & kDescFIndirect) != 0) {
      if (!indirect_ || in_indirect || has_next) {
        return std::unexpected(RingFault::kIndirect);
      }
      table = TANDEM_TRY(indirect_table(descriptor.addr, descriptor.len));
      in_indirect = true;
      index = 0;
      left = table.count + 1;
      continue;
    }
    total_bytes += descriptor.len;
    if (total_bytes > kMaxChainBytes) {
      return std::unexpected(RingFault::kTooLong);
    }
    TANDEM_TRY(add_piece(*memory_, descriptor, pieces));
    if (!has_next) {
      return {};
    }
    index = descriptor.next;
  }
  return std::unexpected(RingFault::kChainLength);
}

std::expected<SplitQueue::Table, RingFault> SplitQueue::indirect_table(uint64_t addr, uint32_t size_bytes) const {
  const size_t count = size_bytes / sizeof(Descriptor);
  if (count == 0 || count > kMaxQueueSize || size_bytes % sizeof(Descriptor) != 0) {
    return std::unexpected(RingFault::kIndirect);
  }
  const auto range = GuestRange::create(GuestAddr(addr), size_bytes);
  const auto bytes = range ? memory_->readable(*range) : std::nullopt;
  if (!bytes) {
    return std::unexpected(RingFault::kAddress);
  }
  return Table{.base = bytes->data(), .count = count};
}

void SplitQueue::undo_pop(DescriptorChain chain) {
  if (in_flight() == 0) {
    return;  // the queue was reset since
  }
  --state_.next_avail;
  keep_spare(std::move(chain.pieces_));
}

void SplitQueue::push(DescriptorChain chain, uint32_t written_bytes) {
  give_back(std::move(chain), written_bytes);
  publish_used();
}

void SplitQueue::push_together(std::span<Filled> buffers) {
  for (Filled& buffer : buffers) {
    give_back(std::move(buffer.chain), buffer.written_bytes);
  }
  publish_used();
}

void SplitQueue::give_back(DescriptorChain chain, uint32_t written_bytes) {
  if (memory_->logs_writes()) {
    for (const std::span<std::byte> piece : chain.writable()) {
      memory_->mark_written(piece);
    }
  }
  if (in_flight() > 0) {  // else the queue was reset since
    const UsedElement element{.id = chain.head(), .len = written_bytes};
    const size_t slot = state_.next_used & (state_.size - 1U);
    std::memcpy(rings_.used + kUsedHeaderBytes + slot * sizeof element, &element, sizeof element);
    ++state_.next_used;
    ++unsignalled_;
  }
  keep_spare(std::move(chain.pieces_));
}

void SplitQueue::publish_used() {
  if (state_.ready) {
    // The driver may look at the elements, and at what was written to the buffers, as soon as it sees the index.
    shared(reinterpret_cast<uint16_t*>(rings_.used) + 1).store(state_.next_used, std::memory_order_release);
    mark_used_ring();
  }
}

bool SplitQueue::should_notify() {
  const uint32_t pushed = std::exchange(unsignalled_, 0);
  if (pushed == 0) {
    return false;
  }
  // Orders our store of the used index before our load of what the driver wants; the driver does the converse.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (std::exchange(interrupt_next_, false)) {
    return true;
  }
  if (!event_idx_) {
    return (shared(rings_.avail).load(std::memory_order_relaxed) & kAvailFNoInterrupt) == 0;
  }
  // Was one of the pushes the one at index used_event?
  return static_cast<uint16_t>(state_.next_used - used_event() - 1) < pushed;
}

void SplitQueue::disable_notifications() {
  // With the event index nothing is to do: the driver rings once when it passes avail_event, which stays behind.
  if (state_.ready && !event_idx_) {
    set_used_flags(kUsedFNoNotify);
  }
}

bool SplitQueue::enable_notifications() {
  if (!state_.ready) {
    return false;
  }
  if (event_idx_) {
    set_avail_event(seen_avail_);
  } else {
    set_used_flags(0);
  }
  // Orders the store above before the load below: either the driver sees that we want a doorbell, or we see its buffer.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return avail_index() != seen_avail_;
}

DescriptorChain::Pieces SplitQueue::take_spare() {
  if (spares_.empty()) {
    return {};
  }
  DescriptorChain::Pieces pieces = std::move(spares_.back());
  spares_.pop_back();
  return pieces;
}

void SplitQueue::keep_spare(DescriptorChain::Pieces pieces) {
  pieces.readable.clear();
  pieces.writable.clear();
  if (spares_.size() < kMaxSpares) {
    spares_.push_back(std::move(pieces));
  }
}

uint16_t SplitQueue::avail_index() const { return shared(rings_.avail + 1).load(std::memory_order_acquire); }

uint16_t SplitQueue::used_event() const {
  return shared(rings_.avail + 2 + state_.size).load(std::memory_order_relaxed);
}

void SplitQueue::set_used_flags(uint16_t flags) {
  shared(reinterpret_cast<uint16_t*>(rings_.used)).store(flags, std::memory_order_relaxed);
  mark_used_ring();
}

void SplitQueue::set_avail_event(uint16_t index) {
  std::byte* const place = rings_.used + kUsedHeaderBytes + sizeof(UsedElement) * state_.size;
  shared(reinterpret_cast<uint16_t*>(place)).store(index, std::memory_order_relaxed);
  mark_used_ring();
}

void SplitQueue::mark_used_ring() const {
  if (memory_->logs_writes()) {
    memory_->mark_written({rings_.used, used_ring_bytes(state_.size)});
  }
}

}  // namespace tandem::devices
