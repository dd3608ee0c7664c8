// SPDX-License-Identifier: Apache-2.0
#include "guest-agent/input_queue.hpp"

#include <utility>

namespace tandem::agent {
namespace {

/// Credit is granted in pieces of this size: less would cost a frame for each.
constexpr uint32_t kCreditStepBytes = kInputWindowBytes / 4;

}  // namespace

Result<void> InputQueue::push(std::vector<std::byte> bytes) {
  if (has_ended_) {
    return fail(Errc::kCorrupt, "input after its end");
  }
  if (bytes.empty()) {
    has_ended_ = true;
    return {};
  }
  waiting_ += bytes.size();
  if (waiting_ + ungranted_ > kInputWindowBytes) {
    return fail(Errc::kCorrupt, "more input than there is credit for");
  }
  pieces_.push_back(std::move(bytes));
  return {};
}

std::span<const std::byte> InputQueue::front() const {
  return pieces_.empty() ? std::span<const std::byte>() : std::span(pieces_.front()).subspan(consumed_);
}

void InputQueue::pop(size_t count) {
  consumed_ += count;
  waiting_ -= count;
  ungranted_ += static_cast<uint32_t>(count);
  if (!pieces_.empty() && consumed_ == pieces_.front().size()) {
    pieces_.pop_front();
    consumed_ = 0;
  }
  if (ungranted_ >= kCreditStepBytes) {
    channel_.queue(FrameKind::kCredit, credit_payload(std::exchange(ungranted_, 0)));
  }
}

}  // namespace tandem::agent
