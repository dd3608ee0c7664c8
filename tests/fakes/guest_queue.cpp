// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/guest_queue.hpp"

#include "vmm/lib/result/result.hpp"

namespace tandem::devices {
namespace {

constexpr uint64_t kDescriptorBytes = 16;
constexpr uint64_t kUsedElementBytes = 8;

SplitQueue::State allocate_rings(FakeRam& ram, uint16_t size) {
  const uint64_t count = size;
  return {.size = size,
          .ready = true,
          .desc_addr = ram.allocate(kDescriptorBytes * count, 16).value(),
          .driver_addr = ram.allocate(6 + 2 * count, 2).value(),
          .device_addr = ram.allocate(6 + kUsedElementBytes * count, 4).value()};
}

}  // namespace

GuestQueue::ChainBuilder& GuestQueue::ChainBuilder::readable(std::span<const std::byte> bytes) {
  const GuestAddr addr = queue_->ram_->allocate(bytes.size());
  queue_->ram_->write(addr, bytes);
  return piece(addr.value(), static_cast<uint32_t>(bytes.size()), 0);
}

GuestQueue::ChainBuilder& GuestQueue::ChainBuilder::writable(uint32_t size_bytes) {
  return piece(queue_->ram_->allocate(size_bytes).value(), size_bytes, kDescWrite);
}

GuestQueue::ChainBuilder& GuestQueue::ChainBuilder::piece(uint64_t addr, uint32_t size_bytes, uint16_t flags) {
  pieces_.push_back({.addr = addr, .len = size_bytes, .flags = flags, .next = 0});
  return *this;
}

GuestQueue::ChainBuilder& GuestQueue::ChainBuilder::indirect() {
  first_indirect_ = pieces_.size();
  return *this;
}

GuestQueue::GuestChain GuestQueue::ChainBuilder::build() {
  GuestChain chain;
  for (const Descriptor& piece : pieces_) {
    const auto range = GuestRange::create(GuestAddr(piece.addr), piece.len);
    if (range && (piece.flags & kDescWrite) != 0) {
      chain.writable.push_back(*range);
    }
  }
  std::vector<Descriptor> direct = pieces_;
  if (first_indirect_) {
    std::vector<Descriptor> table(direct.begin() + static_cast<ptrdiff_t>(*first_indirect_), direct.end());
    direct.resize(*first_indirect_);
    for (size_t index = 0; index + 1 < table.size(); ++index) {
      table[index].flags |= kDescNext;
      table[index].next = static_cast<uint16_t>(index + 1);
    }
    const auto size_bytes = static_cast<uint32_t>(table.size() * kDescriptorBytes);
    const GuestAddr addr = queue_->ram_->allocate(size_bytes);
    queue_->ram_->write(addr, std::as_bytes(std::span(table)));
    direct.push_back({.addr = addr.value(), .len = size_bytes, .flags = kDescIndirect, .next = 0});
  }
  std::vector<uint16_t> indexes;
  for (size_t count = 0; count < direct.size(); ++count) {
    indexes.push_back(queue_->take_free_descriptor());
  }
  for (size_t index = 0; index < direct.size(); ++index) {
    if (index + 1 < direct.size()) {
      direct[index].flags |= kDescNext;
      direct[index].next = indexes[index + 1];
    }
    queue_->set_descriptor(indexes[index], direct[index]);
  }
  chain.head = indexes.at(0);
  queue_->in_use_[chain.head] = std::move(indexes);
  return chain;
}

GuestQueue::GuestChain GuestQueue::ChainBuilder::submit() {
  GuestChain chain = build();
  queue_->offer(chain.head);
  return chain;
}

GuestQueue::GuestQueue(FakeRam& ram, uint16_t size) : GuestQueue(ram, allocate_rings(ram, size)) {}

GuestQueue::GuestQueue(FakeRam& ram, const SplitQueue::State& state) : ram_(&ram), state_(state) {
  for (uint16_t index = 0; index < state_.size; ++index) {
    free_.push_back(index);
  }
}

void GuestQueue::offer(uint16_t head) {
  const uint16_t index = avail_index();
  put16(place(state_.driver_addr, 4 + 2 * (uint64_t{index} % state_.size)), head);
  set_avail_index(static_cast<uint16_t>(index + 1));
}

std::optional<GuestQueue::Used> GuestQueue::take_used() {
  if (used_index() == taken_used_) {
    return std::nullopt;
  }
  const GuestAddr element = place(state_.device_addr, 4 + kUsedElementBytes * (uint64_t{taken_used_} % state_.size));
  ++taken_used_;
  const uint64_t value = ram_->memory().load<uint32_t>(element, std::memory_order_relaxed).value();
  const Used used{.head = static_cast<uint16_t>(value),
                  .len = ram_->memory().read_value<uint32_t>(GuestAddr(element.value() + 4)).value()};
  const auto chain = in_use_.find(used.head);
  if (chain != in_use_.end()) {
    free_.insert(free_.end(), chain->second.begin(), chain->second.end());
    in_use_.erase(chain);
  }
  return used;
}

void GuestQueue::set_descriptor(uint16_t index, const Descriptor& descriptor) {
  ram_->write(place(state_.desc_addr, kDescriptorBytes * index), std::as_bytes(std::span(&descriptor, 1)));
}

void GuestQueue::set_avail_flags(uint16_t flags) { put16(place(state_.driver_addr, 0), flags); }
void GuestQueue::set_avail_index(uint16_t index) { put16(place(state_.driver_addr, 2), index); }
void GuestQueue::set_used_event(uint16_t index) {
  put16(place(state_.driver_addr, 4 + 2 * uint64_t{state_.size}), index);
}
uint16_t GuestQueue::avail_index() const { return get16(place(state_.driver_addr, 2)); }
uint16_t GuestQueue::used_flags() const { return get16(place(state_.device_addr, 0)); }
uint16_t GuestQueue::used_index() const { return get16(place(state_.device_addr, 2)); }
uint16_t GuestQueue::avail_event() const {
  return get16(place(state_.device_addr, 4 + kUsedElementBytes * state_.size));
}

GuestAddr GuestQueue::place(uint64_t ring_addr, uint64_t offset) const { return GuestAddr(ring_addr + offset); }

void GuestQueue::put16(GuestAddr addr, uint16_t value) const {
  TANDEM_ASSERT(ram_->memory().store(addr, value, std::memory_order_release), "rings are in RAM");
}

uint16_t GuestQueue::get16(GuestAddr addr) const {
  return ram_->memory().load<uint16_t>(addr, std::memory_order_acquire).value();
}

uint16_t GuestQueue::take_free_descriptor() {
  TANDEM_ASSERT(!free_.empty(), "the test offers more descriptors than the queue has");
  const uint16_t index = free_.front();
  free_.pop_front();
  return index;
}

}  // namespace tandem::devices
