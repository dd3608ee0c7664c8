// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_balloon/virtio_balloon.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "devices/virtio_balloon/virtio_balloon_state.hpp"
#include "devices/virtio_queue/config_space.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_balloon;

namespace {

/// Where `bytes`, which the driver's descriptor named, are in guest RAM.
GuestRange range_of(const GuestMemory& memory, std::span<const std::byte> bytes) {
  for (const GuestMemory::Region& region : memory.regions()) {
    // std::less orders pointers into different regions too.
    const std::byte* const end = region.host.data() + region.host.size();
    if (!std::less<>()(bytes.data(), region.host.data()) && std::less<>()(bytes.data(), end)) {
      const auto offset = static_cast<uint64_t>(bytes.data() - region.host.data());
      return GuestRange::create(region.range.base().plus(offset).value(), bytes.size()).value();  // inside the region
    }
  }
  TANDEM_UNREACHABLE("the queue found these bytes in guest RAM");
}

bool is_ram(const GuestMemory& memory, uint32_t page) {
  const GuestRange range = GuestRange::create(GuestAddr(page * kPageBytes), kPageBytes).value();  // 44 bits: no wrap
  return std::ranges::any_of(memory.regions(), [&](const auto& region) { return region.range.contains(range); });
}

}  // namespace

Result<void> VirtioBalloon::set_target(uint64_t bytes) {
  const uint64_t pages = bytes / kPageBytes;
  if (pages > UINT32_MAX) {
    return fail(Errc::kOutOfRange, "{}: a balloon holds at most {} bytes", name_, UINT32_MAX * kPageBytes);
  }
  if (pages != state_.num_pages) {
    state_.num_pages = static_cast<uint32_t>(pages);
    if (active_) {
      active_->transport.notify_config();
    }
  }
  return {};
}

bool VirtioBalloon::request_stats() {
  if (!stats_buffer_) {
    return false;
  }
  active_->queues[kStatsQueue].push(*std::exchange(stats_buffer_, std::nullopt), 0);
  signal(kStatsQueue);
  take_stats();  // so that the driver rings when it has them
  return true;
}

// Life cycle

Result<void> VirtioBalloon::reset() {
  active_.reset();
  stats_buffer_.reset();
  stats_ = {};
  pages_.clear();
  for (Work& work : work_) {
    work.done_bytes = 0;
  }
  state_.actual = 0;
  return {};
}

Result<void> VirtioBalloon::pause() {
  put_back_stats_buffer();
  paused_ = true;
  return {};
}

Result<void> VirtioBalloon::resume() {
  paused_ = false;
  for (uint16_t queue = 0; active_ && queue < kQueueCount; ++queue) {
    if (!active_->queues[queue].is_ready()) {
      work_.at(queue).done_bytes = 0;  // the driver took the queue back, and with it a buffer that was done in part
    }
  }
  return {};
}

Result<StateRecord> VirtioBalloon::save() {
  const auto& [num_pages, actual] = state_;
  return save_state(VirtioBalloonStateV1{.num_pages = num_pages, .actual = actual});
}

Result<void> VirtioBalloon::restore(const StateRecord& record) {
  const auto [num_pages, actual] = TANDEM_TRY(load_state<VirtioBalloonStateV1>(record));
  state_ = {.num_pages = num_pages, .actual = actual};
  return {};
}

uint32_t VirtioBalloon::device_id() const { return kDeviceId; }

uint64_t VirtioBalloon::device_features() const {
  return kFMustTellHost | kFStatsVq | kFDeflateOnOom | kFPageReporting;
}

std::array<std::byte, kConfigBytes> VirtioBalloon::config() const {
  std::array<std::byte, kConfigBytes> config{};
  store_le(std::span(config).subspan(kNumPages), state_.num_pages);
  store_le(std::span(config).subspan(kActual), state_.actual);
  return config;
}

void VirtioBalloon::read_config(uint64_t offset, std::span<std::byte> out) { copy_config(config(), offset, out); }

void VirtioBalloon::write_config(uint64_t offset, std::span<const std::byte> bytes) {
  if (offset >= kConfigBytes) {
    return;
  }
  auto written = config();
  std::ranges::copy(bytes.first(std::min(bytes.size(), kConfigBytes - offset)),
                    written.begin() + static_cast<ptrdiff_t>(offset));
  state_.actual = load_le<uint32_t>(std::span(written).subspan(kActual));
}

void VirtioBalloon::activate(const VirtioActivation& activation) { active_.emplace(activation); }

void VirtioBalloon::notify(uint16_t queue) {
  if (!is_running() || queue >= kQueueCount) {
    return;
  }
  if (role_of(queue) == Role::kStats) {
    take_stats();
  } else {
    serve(queue);
  }
}

VirtioBalloon::Role VirtioBalloon::role_of(uint16_t queue) const {
  if (queue == kInflateQueue) {
    return Role::kInflate;
  }
  if (queue == kDeflateQueue) {
    return Role::kDeflate;
  }
  if (queue == kStatsQueue && has_feature(kFStatsVq)) {
    return Role::kStats;
  }
  return has_feature(kFPageReporting) ? Role::kReport : Role::kNone;
}

// Pages

void VirtioBalloon::serve(uint16_t queue) {
  if (!is_running() || work_.at(queue).posted || role_of(queue) == Role::kNone) {
    return;
  }
  active_->queues[queue].disable_notifications();
  uint64_t left_bytes = role_of(queue) == Role::kReport ? kReportBytesPerRun : kPagesPerRun * sizeof(uint32_t);
  Step step = Step::kDone;
  for (unsigned count = 0; step == Step::kDone && count < kBuffersPerRun; ++count) {
    step = serve_next(queue, left_bytes);
  }
  if (!active_) {
    return;
  }
  signal(queue);
  if (step != Step::kIdle) {
    serve_later(queue);
  }
}

/// Does what is left of one buffer, within `left_bytes`.
VirtioBalloon::Step VirtioBalloon::serve_next(uint16_t queue_index, uint64_t& left_bytes) {
  SplitQueue& queue = active_->queues[queue_index];
  auto chain = queue.pop_or_rearm();
  if (!chain) {
    stop(text_of(chain.error()));
    return Step::kIdle;
  }
  if (!*chain) {
    return Step::kIdle;
  }
  const Role role = role_of(queue_index);
  const uint64_t size_bytes =
      role == Role::kReport ? (*chain)->writable_size() : align_down((*chain)->readable_size(), sizeof(uint32_t));
  uint64_t& done_bytes = work_.at(queue_index).done_bytes;
  const uint64_t run_bytes = std::min(size_bytes - std::min(done_bytes, size_bytes), left_bytes);
  work_on(role, **chain, done_bytes, run_bytes);
  left_bytes -= run_bytes;
  done_bytes += run_bytes;
  if (done_bytes < size_bytes) {
    queue.undo_pop(*std::move(*chain));
    return Step::kPartly;
  }
  queue.push(*std::move(*chain), 0);
  done_bytes = 0;
  if (!has_feature(kFMustTellHost)) {
    pages_.clear();
  }
  return Step::kDone;
}

void VirtioBalloon::work_on(Role role, DescriptorChain& chain, uint64_t offset, uint64_t size_bytes) {
  if (role == Role::kReport) {
    return report(chain, offset, size_bytes);
  }
  std::array<uint32_t, kPagesPerRun> numbers;
  const std::span<uint32_t> pages = std::span(numbers).first(size_bytes / sizeof(uint32_t));
  const size_t read_bytes = chain.read(offset, std::as_writable_bytes(pages));
  TANDEM_ASSERT(read_bytes == size_bytes, "the run ends with the buffer");
  if (role == Role::kInflate) {
    inflate(pages);
  } else {
    pages_.deflate(pages);
  }
}

void VirtioBalloon::inflate(std::span<uint32_t> pages) {
  std::ranges::sort(pages);
  const auto twice = std::ranges::unique(pages);
  pages = pages.first(pages.size() - twice.size());
  const auto outside = std::ranges::remove_if(pages, [this](uint32_t page) { return !is_ram(active_->memory, page); });
  pages = pages.first(pages.size() - outside.size());
  counters_.ignored_pages += outside.size();
  for (const GuestRange range : pages_.inflate(pages)) {
    discard(range);
  }
}

void VirtioBalloon::report(DescriptorChain& chain, uint64_t offset, uint64_t size_bytes) {
  for (const std::span<std::byte> piece : chain.writable()) {
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const auto run = piece.subspan(offset, std::min(piece.size() - offset, size_bytes));
    if (run.empty()) {
      return;
    }
    offset = 0;
    size_bytes -= run.size();
    discard(range_of(active_->memory, run));
  }
}

void VirtioBalloon::discard(GuestRange range) {
  if (const auto done = ram_.discard(range); done) {
    counters_.discarded_bytes += range.size();
  } else {
    ++counters_.failed_discards;
    if (const uint64_t count = discard_failures_.count(); count != 0) {
      log::warn("{}: {} (time {})", name_, done.error().message(), count);
    }
  }
}

void VirtioBalloon::serve_later(uint16_t queue) {
  work_.at(queue).posted = true;
  executor_.post([this, queue] {
    work_.at(queue).posted = false;
    serve(queue);
  });
}

// Statistics

/// Reads the driver's statistics, and keeps the buffer: giving it back asks for new ones.
void VirtioBalloon::take_stats() {
  if (stats_buffer_) {
    return;
  }
  auto chain = active_->queues[kStatsQueue].pop_or_rearm();
  if (!chain) {
    return stop(text_of(chain.error()));
  }
  if (!*chain) {
    return;
  }
  constexpr size_t kMaxEntries = 64;
  std::array<std::byte, kMaxEntries * kStatEntryBytes> bytes;
  const size_t size_bytes = (*chain)->read(0, bytes);
  stats_.values = {};
  for (size_t offset = 0; offset + kStatEntryBytes <= size_bytes; offset += kStatEntryBytes) {
    const auto entry = std::span(bytes).subspan(offset);
    const auto tag = load_le<uint16_t>(entry);
    if (tag < BalloonStats::kTagCount) {  // others are of later versions of the specification
      stats_.values.at(tag) = load_le<uint64_t>(entry.subspan(kStatTagBytes));
    }
  }
  ++stats_.update_count;
  stats_buffer_ = *std::move(chain);
}

void VirtioBalloon::put_back_stats_buffer() {
  if (stats_buffer_) {
    active_->queues[kStatsQueue].undo_pop(*std::exchange(stats_buffer_, std::nullopt));
  }
}

// All queues

void VirtioBalloon::signal(uint16_t queue) {
  if (active_->queues[queue].should_notify()) {
    active_->transport.notify_used(queue);
  }
}

/// The device does no more until it is reset.
void VirtioBalloon::stop(std::string_view why) {
  put_back_stats_buffer();
  active_->transport.set_needs_reset(why);
  active_.reset();
}

}  // namespace tandem::devices
