// SPDX-License-Identifier: Apache-2.0
#include "devices/virtio_console/virtio_console.hpp"

#include <algorithm>
#include <utility>

#include "devices/virtio_console/virtio_console_regs.hpp"
#include "devices/virtio_console/virtio_console_state.hpp"
#include "devices/virtio_queue/config_space.hpp"
#include "vmm/lib/bits/bits.hpp"

namespace tandem::devices {

using namespace virtio_console;

VirtioConsole::VirtioConsole(std::string name, DeviceExecutor& executor, CharBackend& backend)
    : name_(std::move(name)), executor_(executor), backend_(backend) {
  backend_.set_sink(this);
}

VirtioConsole::~VirtioConsole() { backend_.set_sink(nullptr); }

void VirtioConsole::set_size(ConsoleSize size) {
  if (size == size_) {
    return;
  }
  size_ = size;
  if (active_ && (active_->features & kFSize) != 0) {
    active_->transport.notify_config();
  }
}

Result<void> VirtioConsole::reset() {
  receive_buffer_.reset();
  active_.reset();
  transmitted_bytes_ = 0;
  return {};
}

Result<void> VirtioConsole::pause() {
  put_back_receive_buffer();
  paused_ = true;
  return {};
}

Result<void> VirtioConsole::resume() {
  paused_ = false;
  if (active_ && !active_->queues[kTransmitQueue].is_ready()) {
    transmitted_bytes_ = 0;  // the driver took the queue back, and with it a buffer that was passed on in part
  }
  return {};
}

Result<StateRecord> VirtioConsole::save() {
  return save_state(
      VirtioConsoleStateV1{.cols = size_.cols, .rows = size_.rows, .transmitted_bytes = transmitted_bytes_});
}

Result<void> VirtioConsole::restore(const StateRecord& record) {
  const auto [cols, rows, transmitted_bytes] = TANDEM_TRY(load_state<VirtioConsoleStateV1>(record));
  size_ = {.cols = cols, .rows = rows};
  transmitted_bytes_ = transmitted_bytes;
  return {};
}

uint32_t VirtioConsole::device_id() const { return kDeviceId; }

uint64_t VirtioConsole::device_features() const { return kFSize | kFEmergWrite; }

void VirtioConsole::read_config(uint64_t offset, std::span<std::byte> out) {
  std::array<std::byte, kConfigBytes> config{};
  store_le(std::span(config).subspan(kCols), size_.cols);
  store_le(std::span(config).subspan(kRows), size_.rows);
  store_le(std::span(config).subspan(kMaxNrPorts), uint32_t{1});
  copy_config(config, offset, out);
}

void VirtioConsole::write_config(uint64_t offset, std::span<const std::byte> bytes) {
  // Works before the driver has set anything up: it is meant for a guest's first and last words.
  if (offset == kEmergWr && !bytes.empty()) {
    backend_.write(bytes.first(1));
  }
}

void VirtioConsole::activate(const VirtioActivation& activation) { active_.emplace(activation); }

void VirtioConsole::notify(uint16_t queue) {
  if (queue == kTransmitQueue) {
    transmit();
  } else if (queue == kReceiveQueue) {
    take_receive_buffer();
  }
}

size_t VirtioConsole::room() const { return receive_buffer_ ? receive_buffer_->writable_size() : 0; }

void VirtioConsole::receive(std::span<const std::byte> bytes) {
  TANDEM_ASSERT(receive_buffer_ && bytes.size() <= room(), "backends ask for room first");
  const size_t written_bytes = receive_buffer_->write(0, bytes);
  active_->queues[kReceiveQueue].push(*std::exchange(receive_buffer_, std::nullopt),
                                      static_cast<uint32_t>(written_bytes));
  signal(kReceiveQueue);
  take_receive_buffer();
}

/// Finds a buffer for the next input, and lets input come when there is one.
void VirtioConsole::take_receive_buffer() {
  if (!is_running() || receive_buffer_) {
    return;
  }
  auto chain = active_->queues[kReceiveQueue].pop_or_rearm();
  if (!chain) {
    return stop(text_of(chain.error()));
  }
  receive_buffer_ = *std::move(chain);
  if (!receive_buffer_) {
    return;
  }
  if (receive_buffer_->writable_size() == 0) {
    return stop("receive buffer without room");
  }
  backend_.resume_input();
}

void VirtioConsole::put_back_receive_buffer() {
  if (receive_buffer_) {
    active_->queues[kReceiveQueue].undo_pop(*std::exchange(receive_buffer_, std::nullopt));
  }
}

void VirtioConsole::transmit() {
  if (!is_running() || posted_) {
    return;
  }
  SplitQueue& queue = active_->queues[kTransmitQueue];
  queue.disable_notifications();
  size_t left_bytes = kBytesPerRun;
  Step step = Step::kDone;
  for (unsigned taken = 0; step == Step::kDone && taken < kBuffersPerRun; ++taken) {
    step = transmit_next(left_bytes);
  }
  if (!active_) {
    return;
  }
  signal(kTransmitQueue);
  if (step != Step::kIdle) {
    transmit_later();
  }
}

/// Passes on what is left of one buffer, within `left_bytes`.
VirtioConsole::Step VirtioConsole::transmit_next(size_t& left_bytes) {
  SplitQueue& queue = active_->queues[kTransmitQueue];
  auto chain = queue.pop_or_rearm();
  if (!chain) {
    stop(text_of(chain.error()));
    return Step::kIdle;
  }
  if (!*chain) {
    return Step::kIdle;
  }
  const size_t passed_bytes = output(**chain, transmitted_bytes_, left_bytes);
  left_bytes -= passed_bytes;
  transmitted_bytes_ += passed_bytes;
  if (transmitted_bytes_ < (*chain)->readable_size()) {
    queue.undo_pop(*std::move(*chain));
    return Step::kPartly;
  }
  queue.push(*std::move(*chain), 0);
  transmitted_bytes_ = 0;
  return Step::kDone;
}

/// Passes on at most `limit_bytes` of `chain` from byte `offset` on. @return bytes passed on.
size_t VirtioConsole::output(const DescriptorChain& chain, uint64_t offset, size_t limit_bytes) {
  size_t done = 0;
  for (const std::span<const std::byte> piece : chain.readable()) {
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const auto run = piece.subspan(offset, std::min(piece.size() - offset, limit_bytes - done));
    offset = 0;
    if (run.empty()) {
      break;
    }
    backend_.write(run);
    done += run.size();
  }
  return done;
}

void VirtioConsole::transmit_later() {
  posted_ = true;
  executor_.post([this] {
    posted_ = false;
    transmit();
  });
}

void VirtioConsole::signal(uint16_t queue) {
  if (active_->queues[queue].should_notify()) {
    active_->transport.notify_used(queue);
  }
}

/// The device does no more until it is reset.
void VirtioConsole::stop(std::string_view why) {
  put_back_receive_buffer();
  active_->transport.set_needs_reset(why);
  active_.reset();
}

}  // namespace tandem::devices
