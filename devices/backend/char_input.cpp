// SPDX-License-Identifier: Apache-2.0
#include "devices/backend/char_input.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tandem::devices {

Result<std::unique_ptr<CharInput>> CharInput::create(DeviceExecutor& executor, Filter filter) {
  std::unique_ptr<CharInput> input(new CharInput(executor, std::move(filter)));
  input->timer_ = TANDEM_TRY(LoopTimer::create(executor, LoopTimer::Base::kMonotonic, [in = input.get()] {
    in->work_scheduled_ = false;
    in->work();
  }));
  return input;
}

Result<void> CharInput::attach(CharDescriptor descriptor, OnEnd on_end) {
  TANDEM_ASSERT(!descriptor_, "one source at a time");
  auto watch = executor_.watch(descriptor.fd(), Events::kReadable, [this](Events) { work(); });
  if (watch) {
    watch_ = std::move(*watch);
    reading_ = true;
  } else if (watch.error().code() != Errc::kPermission) {
    return std::unexpected(std::move(watch).error());
  } else {
    schedule_work();
  }
  descriptor_ = std::move(descriptor);
  on_end_ = std::move(on_end);
  return {};
}

void CharInput::detach() {
  watch_ = {};
  descriptor_.reset();
  reading_ = false;
}

void CharInput::set_sink(CharSink* sink) {
  sink_ = sink;
  resume_input();
}

void CharInput::resume_input() {
  if (!pending_.empty()) {
    schedule_work();
  }
}

void CharInput::schedule_work() {
  if (!work_scheduled_) {
    work_scheduled_ = true;
    timer_->arm_after_ns(0);
  }
}

void CharInput::work() {
  if (descriptor_ && pending_.size() < kInputPendingBytes) {
    read_ahead();
  }
  deliver();
  const bool wants_more = descriptor_ && pending_.size() < kInputPendingBytes;
  set_reading(wants_more);
  // A file is always ready: read it as fast as the sink takes it, but let others have the loop in between.
  if (wants_more && !watch_ && pending_.empty()) {
    schedule_work();
  }
}

void CharInput::read_ahead() {
  std::array<std::byte, kInputPendingBytes> buffer;  // all that is used is read first
  const std::span space = std::span(buffer).first(kInputPendingBytes - pending_.size());
  const IoResult result = descriptor_->read(space);
  if (result.status == IoStatus::kDone) {
    const auto bytes = space.first(result.count);
    const size_t kept = filter_ ? filter_(bytes) : bytes.size();
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(kept));
  } else if (result.status != IoStatus::kWouldBlock) {
    const OnEnd on_end = std::move(on_end_);
    detach();
    on_end(result.status);
  }
}

void CharInput::deliver() {
  size_t done = 0;
  while (sink_ != nullptr && done < pending_.size()) {
    const size_t count = std::min(sink_->room(), pending_.size() - done);
    if (count == 0) {
      break;
    }
    sink_->receive(std::span(pending_).subspan(done, count));
    done += count;
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(done));
}

void CharInput::set_reading(bool reading) {
  if (watch_ && reading != reading_) {
    reading_ = reading;
    watch_.set_events(reading ? Events::kReadable : Events::kNone);
  }
}

}  // namespace tandem::devices
