// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_output.hpp"

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace tandem::devices {
namespace {

/// Least time between two writes [ns]: shorter than a screen shows, long enough that a guest that prints is not
/// interrupted for every few bytes of it.
constexpr uint64_t kCollectNs = 16'000'000;
/// More than this is not collected, but written at once: a burst must not fill the ring of a reader who keeps up.
constexpr size_t kHurryBytes = kHistoryBytes / 2;
/// How long one step of the last flush waits for the reader.
constexpr int kLastFlushStepMs = 100;
constexpr int kLastFlushSteps = 10;

uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000) + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

CharOutput::CharOutput(DeviceExecutor& executor, Unattached unattached)
    : executor_(executor),
      unattached_(unattached),
      ring_(unattached == Unattached::kDrop ? kOutputRingBytes : kHistoryBytes,
            unattached == Unattached::kReplay ? CharRing::History::kKeep : CharRing::History::kForget) {}

Result<std::unique_ptr<CharOutput>> CharOutput::create(DeviceExecutor& executor, Unattached unattached) {
  std::unique_ptr<CharOutput> output(new CharOutput(executor, unattached));
  output->timer_ =
      TANDEM_TRY(LoopTimer::create(executor, LoopTimer::Base::kMonotonic, [out = output.get()] { out->flush(); }));
  return output;
}

CharOutput::~CharOutput() {
  on_end_ = [] {};  // its owner is ending, too
  for (int step = 0; step < kLastFlushSteps && descriptor_ && ring_.unsent_bytes() != 0; ++step) {
    flush();
    if (descriptor_ && ring_.unsent_bytes() != 0) {
      pollfd entry{.fd = descriptor_->fd(), .events = POLLOUT, .revents = 0};
      ::poll(&entry, 1, kLastFlushStepMs);
    }
  }
}

Result<void> CharOutput::attach(CharDescriptor descriptor, std::function<void()> on_end) {
  TANDEM_ASSERT(!descriptor_, "one reader at a time");
  auto watch = executor_.watch(descriptor.fd(), Events::kNone, [this](Events) { flush(); });
  if (watch) {
    watch_ = std::move(*watch);
  } else if (watch.error().code() != Errc::kPermission) {
    return std::unexpected(std::move(watch).error());
  }
  descriptor_ = std::move(descriptor);
  on_end_ = std::move(on_end);
  if (unattached_ == Unattached::kReplay) {
    ring_.rewind();
  }
  schedule_flush();
  return {};
}

void CharOutput::detach() {
  watch_ = {};
  descriptor_.reset();
  blocked_ = false;
  if (unattached_ == Unattached::kDrop) {
    dropped_bytes_ += ring_.unsent_bytes();
    ring_.mark_sent(ring_.unsent_bytes());
  }
}

void CharOutput::write(std::span<const std::byte> bytes) {
  if (!descriptor_) {
    if (unattached_ == Unattached::kDrop) {
      dropped_bytes_ += bytes.size();
    } else {
      ring_.append_over_oldest(bytes);
    }
    return;
  }
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(bytes.size(), kHurryBytes));
    bytes = bytes.subspan(chunk.size());
    if (ring_.unsent_bytes() + chunk.size() > kHurryBytes && !blocked_) {
      send();  // how it ended is seen again, and dealt with, on the loop
    }
    dropped_bytes_ += ring_.append(chunk);
  }
  if (!flush_scheduled_ && !blocked_ && monotonic_ns() - sent_at_ns_ >= kCollectNs) {
    send();  // as above
  }
  schedule_flush();
}

void CharOutput::schedule_flush() {
  if (!flush_scheduled_ && !blocked_ && ring_.unsent_bytes() != 0) {
    flush_scheduled_ = true;
    timer_->arm_after_ns(kCollectNs);
  }
}

void CharOutput::flush() {
  flush_scheduled_ = false;
  blocked_ = false;
  watch_.set_events(Events::kNone);
  if (!descriptor_) {
    return;
  }
  switch (send()) {
    case IoStatus::kDone:
      return;
    case IoStatus::kNoSpace:
      dropped_bytes_ += ring_.unsent_bytes();
      ring_.mark_sent(ring_.unsent_bytes());
      return;
    case IoStatus::kWouldBlock:
      return wait_until_writable();
    case IoStatus::kBackground:
    case IoStatus::kEnd:
      detach();
      on_end_();
      return;
  }
}

IoStatus CharOutput::send() {
  sent_at_ns_ = monotonic_ns();
  IoResult result{IoStatus::kDone};
  while (result.status == IoStatus::kDone && ring_.unsent_bytes() != 0) {
    result = descriptor_->write(ring_.unsent());
    ring_.mark_sent(result.count);
  }
  return result.status;
}

void CharOutput::wait_until_writable() {
  if (watch_) {
    blocked_ = true;
    watch_.set_events(Events::kWritable);
  } else {
    schedule_flush();  // interrupted by a signal
  }
}

}  // namespace tandem::devices
