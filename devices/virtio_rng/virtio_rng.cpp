// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_rng/virtio_rng.hpp"

#include <algorithm>

#include "vmm/lib/log/log.hpp"

namespace tandem::devices {
namespace {

constexpr std::string_view kKind = "virtio_rng";
constexpr uint16_t kRequestQueue = 0;

}  // namespace

Result<void> VirtioRng::reset() {
  active_.reset();
  return {};
}

Result<void> VirtioRng::pause() {
  paused_ = true;
  return {};
}

Result<void> VirtioRng::resume() {
  paused_ = false;
  return {};
}

Result<StateRecord> VirtioRng::save() { return StateRecord::none(kKind); }

Result<void> VirtioRng::restore(const StateRecord& record) {
  TANDEM_TRY(expect_kind(record, {.kind = kKind, .version = 0}));
  return StateReader(record.payload).finish();
}

void VirtioRng::read_config(uint64_t /*offset*/, std::span<std::byte> out) { std::ranges::fill(out, std::byte{0}); }

void VirtioRng::write_config(uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {}

void VirtioRng::activate(const VirtioActivation& activation) { active_.emplace(activation); }

void VirtioRng::notify(uint16_t queue) {
  if (queue == kRequestQueue) {
    serve();
  }
}

void VirtioRng::serve() {
  if (!active_ || paused_ || posted_) {
    return;
  }
  SplitQueue& queue = active_->queues[kRequestQueue];
  queue.disable_notifications();
  unsigned filled = 0;
  while (filled < kBuffersPerRun && fill_next(queue)) {
    ++filled;
  }
  if (!active_) {
    return;
  }
  if (queue.should_notify()) {
    active_->transport.notify_used(kRequestQueue);
  }
  if (filled == kBuffersPerRun) {
    serve_later();
  }
}

/// Fills one buffer. @return false when there was none, or the device stopped.
bool VirtioRng::fill_next(SplitQueue& queue) {
  auto chain = queue.pop_or_rearm();
  if (!chain) {
    stop(text_of(chain.error()));
    return false;
  }
  if (!*chain) {
    return false;
  }
  uint32_t written_bytes = 0;
  if (!fill(**chain, written_bytes)) {
    stop("the host has no random bytes");
    return false;
  }
  queue.push(std::move(**chain), written_bytes);
  return true;
}

bool VirtioRng::fill(DescriptorChain& chain, uint32_t& written_bytes) {
  for (const std::span<std::byte> piece : chain.writable()) {
    const size_t size_bytes = std::min(piece.size(), kMaxBytesPerBuffer - written_bytes);
    if (const auto done = source_.fill(piece.first(size_bytes)); !done) {
      log::warn("{}: {}", name_, done.error().message());
      return false;
    }
    written_bytes += static_cast<uint32_t>(size_bytes);
  }
  return true;
}

/// The device does no more until it is reset.
void VirtioRng::stop(std::string_view why) {
  active_->transport.set_needs_reset(why);
  active_.reset();
}

void VirtioRng::serve_later() {
  posted_ = true;
  executor_.post([this] {
    posted_ = false;
    serve();
  });
}

}  // namespace tandem::devices
